"""The report as one web page that works offline."""
