"""Every way to name a server and to be let in, on servers of scripts/servers
that were started with --tls.

    connections.py MOONTIDE

takes POSTGRES_URL, MARIADB_URL and TLS_CA from the environment, as
`scripts/servers env` gives them, and ends with `N passed, N failed`.
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import urllib.parse

REACHED, UNREACHABLE = 0, 69

# (what it shows, exit code, database, more environment, part of the message).
# {p}, {m}: the ports; {ca}, {other}: the servers' certificate and a stranger's;
# {folder}: with the files of write_files; {ps}, {ms}: the folders of the sockets.
CASES = [
    ("a plain connection is made where the server asks for none", REACHED,
     "postgresql://moontide@127.0.0.1:{p}/postgres?sslmode=disable", {}, ""),
    ("sslmode=disable is kept to", UNREACHABLE,
     "postgresql://sealed@127.0.0.1:{p}/postgres?sslmode=disable", {},
     "no encryption"),
    ("TLS is used when the server can", REACHED,
     "postgresql://sealed@127.0.0.1:{p}/postgres", {}, ""),
    ("sslmode=verify-full accepts the right certificate", REACHED,
     "postgresql://sealed@localhost:{p}/postgres?sslmode=verify-full&sslrootcert={ca}",
     {}, ""),
    ("sslmode=verify-full refuses another one", UNREACHABLE,
     "postgresql://sealed@localhost:{p}/postgres?sslmode=verify-full&sslrootcert={other}",
     {}, "certificate verify failed"),
    ("PGSSLMODE and PGSSLROOTCERT are read", UNREACHABLE,
     "postgresql://sealed@localhost:{p}/postgres",
     {"PGSSLMODE": "verify-full", "PGSSLROOTCERT": "{other}"},
     "certificate verify failed"),
    ("the password may stand in the URL, with escapes", REACHED,
     "postgresql://asked:s%65cret@127.0.0.1:{p}/postgres", {}, ""),
    ("a wrong password is refused and not shown", UNREACHABLE,
     "postgresql://asked:wr0ng@127.0.0.1:{p}/postgres", {},
     "password authentication failed"),
    ("PGPASSWORD is read", REACHED,
     "postgresql://asked@127.0.0.1:{p}/postgres", {"PGPASSWORD": "secret"}, ""),
    ("PGPASSFILE is read", REACHED,
     "postgresql://asked@127.0.0.1:{p}/postgres",
     {"PGPASSFILE": "{folder}/passwords"}, ""),
    ("passfile may stand in the URL", REACHED,
     "postgresql://asked@127.0.0.1:{p}/postgres?passfile={folder}/passwords",
     {}, ""),
    ("PGHOST, PGPORT, PGUSER and PGDATABASE fill an empty URL", REACHED,
     "postgresql://", {"PGHOST": "127.0.0.1", "PGPORT": "{p}",
                       "PGUSER": "moontide", "PGDATABASE": "postgres"}, ""),
    ("a service is looked up", REACHED, "postgresql://?service=bank",
     {"PGSERVICEFILE": "{folder}/services"}, ""),
    ("PGSERVICE is read", REACHED, "postgresql://",
     {"PGSERVICEFILE": "{folder}/services", "PGSERVICE": "bank"}, ""),
    ("of several hosts the one that answers is taken", REACHED,
     "postgresql://moontide@127.0.0.1:1,127.0.0.1:{p}/postgres", {}, ""),
    ("a socket's folder may be the host", REACHED,
     "postgresql://moontide@{ps_escaped}:{p}/postgres", {}, ""),
    ("a socket's folder may be an option", REACHED,
     "postgresql:///postgres?host={ps}&port={p}&user=moontide", {}, ""),
    ("options reach the server", UNREACHABLE,
     "postgresql://moontide@127.0.0.1:{p}/postgres?options=-cno_such_setting%3D1",
     {}, "no_such_setting"),
    ("a database that is not there is named", UNREACHABLE,
     "postgresql://moontide@127.0.0.1:{p}/nowhere", {}, "nowhere"),
    ("a port where nobody listens is named", UNREACHABLE,
     "postgresql://moontide@127.0.0.1:1/postgres", {}, "port 1"),

    ("ssl-mode=disabled is kept to", UNREACHABLE,
     "mariadb://sealed@127.0.0.1:{m}/moontide?ssl-mode=disabled", {},
     "Access denied"),
    ("TLS is used when the server can", REACHED,
     "mariadb://sealed@127.0.0.1:{m}/moontide", {}, ""),
    ("ssl-mode=required", REACHED,
     "mysql://sealed@127.0.0.1:{m}/moontide?ssl-mode=required", {}, ""),
    ("ssl-mode=verify_ca accepts the right certificate", REACHED,
     "mariadb://sealed@127.0.0.1:{m}/moontide?ssl-mode=verify_ca&ssl_ca={ca}",
     {}, ""),
    ("ssl-mode=verify_ca refuses another one", UNREACHABLE,
     "mariadb://sealed@127.0.0.1:{m}/moontide?ssl-mode=verify_ca&ssl_ca={other}",
     {}, "certificate"),
    ("a certificate given beside `preferred` is not given up", UNREACHABLE,
     "mariadb://moontide@127.0.0.1:{m}/moontide?ssl_ca={other}", {},
     "certificate"),
    ("ssl-mode=verify_identity accepts the server's name", REACHED,
     "mariadb://sealed@localhost:{m}/moontide?ssl-mode=verify_identity&ssl_ca={ca}",
     {}, ""),
    ("tls_verify=true is the same", REACHED,
     "mariadb://sealed@localhost:{m}/moontide?tls_verify=true&ssl_ca={ca}", {},
     ""),
    ("tls_verify=true refuses what the system does not know", UNREACHABLE,
     "mariadb://sealed@localhost:{m}/moontide?tls_verify=true", {},
     "certificate"),
    ("user and password may have escapes", REACHED,
     "mariadb://%61sked:s%65cret@127.0.0.1:{m}/moontide", {}, ""),
    ("a wrong password is refused and not shown", UNREACHABLE,
     "mariadb://asked:wr0ng@127.0.0.1:{m}/moontide", {}, "Access denied"),
    ("a socket is an option", REACHED,
     "mariadb:///moontide?socket={ms}/socket&user=root", {}, ""),
    ("a database that is not there is named", UNREACHABLE,
     "mariadb://moontide@127.0.0.1:{m}/nowhere", {}, "nowhere"),
    ("a port where nobody listens is refused", UNREACHABLE,
     "mariadb://moontide@127.0.0.1:1/moontide", {}, "127.0.0.1"),
]


def write_files(folder, names):
    other = folder / "other.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days",
         "30", "-subj", "/CN=stranger", "-addext",
         "subjectAltName=DNS:localhost,IP:127.0.0.1",
         "-keyout", folder / "other.key", "-out", other],
        check=True, stderr=subprocess.DEVNULL)
    passwords = folder / "passwords"
    passwords.write_text("127.0.0.1:*:*:asked:secret\n")
    passwords.chmod(0o600)
    (folder / "services").write_text(
        f"[bank]\nhost=127.0.0.1\nport={names['p']}\nuser=moontide\n"
        "dbname=postgres\n")
    names.update(folder=str(folder), other=str(other))


def main():
    moontide, = sys.argv[1:]
    postgres = urllib.parse.urlsplit(os.environ["POSTGRES_URL"])
    mariadb = urllib.parse.urlsplit(os.environ["MARIADB_URL"])
    servers = pathlib.Path(os.environ["TLS_CA"]).parent
    sockets = str(servers / "postgres")
    names = {"p": str(postgres.port), "m": str(mariadb.port),
             "ca": os.environ["TLS_CA"], "ps": sockets,
             "ps_escaped": urllib.parse.quote(sockets, safe=""),
             "ms": str(servers / "mariadb")}
    passed = failed = 0
    with tempfile.TemporaryDirectory(prefix="moontide-connect-") as folder:
        write_files(pathlib.Path(folder), names)
        for title, code, url, more, says in CASES:
            env = {name: value for name, value in os.environ.items()
                   if not name.startswith(("PG", "MOONTIDE", "DATABASE_URL"))}
            env.update((name, value.format(**names)) for name, value in more.items())
            done = subprocess.run(
                [moontide, "schema", "upgrade", "--database", url.format(**names)],
                cwd=folder, env=env, text=True, check=False,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT)
            good = (done.returncode == code and says in done.stdout
                    and "wr0ng" not in done.stdout and "\\t" not in done.stdout)
            passed += good
            failed += not good
            print(f"{'pass' if good else 'FAIL'} {url.split(':')[0]}: {title}")
            if not good:
                print(f"     {url.format(**names)} ended with {done.returncode}: "
                      f"{done.stdout}")
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
