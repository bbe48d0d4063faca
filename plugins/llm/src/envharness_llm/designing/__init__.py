"""How a language model designs: what it is told, how it answers, and how it is asked again."""
