/*
 * MySQL URL -- mysql://user:password@host:port/database?options, taken apart.
 *
 * mariadb:// is the same. Every part may be percent-encoded. Without a host
 * the server is reached by its socket, with one by TCP, `localhost` included.
 *
 *   user, password          as well as before the @
 *   socket                  path of the server's socket
 *   connect_timeout         seconds, 1 to 3600
 *   ssl-mode                disabled, preferred, required, verify_ca,
 *                           verify_identity
 *   tls_verify              true: the same as ssl-mode=verify_identity
 *   ssl_ca, ssl_cert, ssl_key   files
 *
 * `-` and `_` in a name are one, and case does not matter.
 */
#ifndef HOST_DB_MYSQL_URL_H
#define HOST_DB_MYSQL_URL_H

#include "base/arena.h"
#include "base/status.h"

enum mysql_tls {
    MYSQL_TLS_PREFERRED, /* when the server can */
    MYSQL_TLS_DISABLED,
    MYSQL_TLS_REQUIRED,
    MYSQL_TLS_VERIFY_CA,       /* signed by ssl_ca */
    MYSQL_TLS_VERIFY_IDENTITY, /* ... and for this host */
};

/** Strings are NULL when the URL does not say; all live in `arena`. */
struct mysql_url {
    const char *user;
    const char *password;
    const char *host; /* IPv6 without its brackets */
    unsigned port;    /* 0: the usual one */
    const char *database;
    const char *socket;
    unsigned connect_timeout; /* seconds */
    enum mysql_tls tls;
    const char *ssl_ca;
    const char *ssl_cert;
    const char *ssl_key;
    struct arena arena;
};

#define MYSQL_URL_CONNECT_TIMEOUT 10u /* seconds, when the URL does not say */

bool mysql_url_accepts(const char *url);

/** CONFIG says what is wrong and never shows the password. `parsed` must be
 * freed whatever the outcome. */
enum status mysql_url_parse(const char *url, struct mysql_url *parsed,
                            struct diag *diag) MUST_CHECK;
void mysql_url_free(struct mysql_url *parsed);

#endif
