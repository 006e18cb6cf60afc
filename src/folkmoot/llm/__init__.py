"""One call of a model: a view and a question go in, a reply or a classed failure comes out.

`registry` finds the adapter of a `ModelChoice`; `openai`, `local` and `scripted` are the adapters; `rendering` turns a view
into a provider's messages; `model_file` fetches the small local model. Deliberately absent: retries and what a reply means
(the engine's), tools' execution, the database, and the environment (keys come through a function that is handed in).
"""
