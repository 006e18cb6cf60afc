"""The embedded PostgreSQL server: started on a data directory when first used, shared by every process that uses it, stopped by
the last one.

    open_server   a running server on a data directory, initialised if it is new; the handle's `close` gives the use back
    stop_server   stops it for everybody, whoever uses it
    default_data_dir   where the data lies if no setting says otherwise

A data directory holds

    pg/                 the cluster (PGDATA), owned by the account that the server runs as
    pg.partial/         a cluster that is being made; swept by the next start if its maker died
    run/                the socket (a folder below /tmp instead where this path would be too long)
    log/                the server's log, a file for each day of the week
    folkmoot-control/   locks and the server's configuration, rewritten at each start
    postgresql.local.conf   settings of the operator's own, read last; optional

Three locks (flock, so that a killed process gives its own back) carry everything; there is no daemon and no list of pids:
`start.lock` is held around every start, initialisation and stop; each user holds `users.lock` shared; the server's own
processes inherit `server.lock`, which is free again when the last of them has ended, also after kill -9.

Invariants: no TCP, no password and no setting is read here; nothing is started before `server.lock` is free; no mode or owner
is changed of anything that this package did not make; whatever goes wrong is a DatabaseFault that says what to do.
"""

from folkmoot.store.embedded.places import default_data_dir
from folkmoot.store.embedded.server import EmbeddedServer, open_server, stop_server

__all__ = ["EmbeddedServer", "default_data_dir", "open_server", "stop_server"]
