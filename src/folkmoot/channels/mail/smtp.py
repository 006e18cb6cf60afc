"""One mail out over SMTP, on a connection that was made for it; and which failures may go away."""

from __future__ import annotations

from dataclasses import dataclass
from email.message import EmailMessage

import aiosmtplib

from folkmoot.channels.channel import ChannelDown, ChannelError, ChannelRefused, ChannelWorld

_STEP_SECONDS = 20.0
_MOST_CHARACTERS = 300


@dataclass(frozen=True, slots=True)
class Server:
    """`security`: none, starttls or tls. `user` and `password`: null where none is needed. `greets_as`: the name that it is told."""

    host: str
    port: int
    security: str
    user: str | None
    password: str | None
    greets_as: str


async def send_mail(world: ChannelWorld, server: Server, mail: EmailMessage, *, sender: str, to: str) -> None:
    """Raises ChannelDown and ChannelRefused."""
    place = f"The mail server {server.host}"
    try:
        connection = await world.connect(server.host, server.port)
    except Exception as error:  # whatever a network may do, a refused address included
        raise ChannelDown(f"{place} cannot be reached: {_words(error)}") from error
    try:
        await aiosmtplib.send(
            mail.as_bytes(),  # by the mail's own policy: the library's folds long ids
            sender=sender,
            recipients=[to],
            hostname=server.host,
            sock=connection,
            use_tls=server.security == "tls",
            start_tls=server.security == "starttls",
            tls_context=world.tls() if server.security != "none" else None,
            username=server.user,
            password=server.password,
            local_hostname=server.greets_as,
            timeout=_STEP_SECONDS,
        )
    except aiosmtplib.SMTPException as error:
        raise _failure(place, error) from error
    except OSError as error:
        raise ChannelDown(f"{place} cannot be spoken to: {_words(error)}") from error
    except ValueError as error:  # raised before the library has taken the connection over
        connection.close()
        raise ChannelRefused(f"The mail cannot be sent: {_words(error)}") from error


def _failure(place: str, error: aiosmtplib.SMTPException) -> ChannelError:
    if isinstance(error, aiosmtplib.SMTPRecipientsRefused):
        error = error.recipients[0]
    if isinstance(error, aiosmtplib.SMTPAuthenticationError) and error.code >= 500:  # its words may hold what was sent
        return ChannelRefused(
            f"{place} does not let the user in ({error.code}); correct 'smtpUser' or the secret 'smtpPassword'."
        )
    if isinstance(error, aiosmtplib.SMTPConnectError | aiosmtplib.SMTPTimeoutError | aiosmtplib.SMTPServerDisconnected):
        return ChannelDown(f"{place} cannot be spoken to: {_words(error)}")
    if isinstance(error, aiosmtplib.SMTPResponseException):
        kind = ChannelRefused if error.code >= 500 else ChannelDown
        return kind(f"{place} does not take the mail: {error.code} {error.message[:_MOST_CHARACTERS]}")
    return ChannelRefused(f"{place} cannot do what 'smtpSecurity' and 'smtpUser' ask for: {_words(error)}")


def _words(error: Exception) -> str:
    return str(error)[:_MOST_CHARACTERS] or type(error).__name__
