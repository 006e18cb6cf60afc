"""The command `folkmoot`. Progress goes to stderr, data to stdout; exit codes are those of docs/spec/README.md.

Deliberately absent: anything that a program could not do through the services or the API.
"""
