"""`email`: a run's owner is written to over SMTP, and answers by replying; the reply comes in over IMAP or a signed request."""
