"""PostgreSQL: the one database, queue and wake-up. One module and one `.sql` file per noun.

Invariant: only this package speaks SQL, and it decides only about concurrency (claims, fences, limits); what a turn or a
vote means is decided in `engine`. Deliberately absent: an ORM, a cache, retries of anything that is not one statement.
"""
