"""The campaign: observe, diagnose, write, check, validate, judge, confirm, commit, report."""
