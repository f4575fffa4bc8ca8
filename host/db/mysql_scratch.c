#include "db/mysql_session.h"

#include "base/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

/* What a scratch database is called; nothing else is ever dropped. */
#define PREFIX "moontide_scratch_"

/* The URL with another database in it. */
static void write_url(const char *url, const char *database, struct buffer *out)
{
    const char *start = strstr(url, "://") + 3;
    const char *end = start + strcspn(start, "/?");
    const char *options = strchr(end, '?');

    buffer_append(out, url, (size_t)(end - url));
    buffer_printf(out, "/%s", database);
    if (options != NULL)
        buffer_append_string(out, options);
}

static enum status make(struct db_session *session, const char *url,
                        struct buffer *out, struct diag *diag)
{
    char name[64];
    char text[128];
    enum status status;

    (void)snprintf(name, sizeof(name), PREFIX "%d_%" PRIx64, (int)getpid(),
                   (uint64_t)clock_monotonic());
    (void)snprintf(text, sizeof(text), "CREATE DATABASE \"%s\"", name);
    status = mysql_statement_run(session, text, diag);
    if (status == STATUS_OK)
        write_url(url, name, out);
    return status;
}

static enum status drop(struct db_session *session, struct diag *diag)
{
    const char *name = session->url.database;
    char text[128];

    if (strncmp(name, PREFIX, strlen(PREFIX)) != 0 ||
        strspn(name + strlen(PREFIX), "0123456789abcdef_") !=
            strlen(name + strlen(PREFIX)) ||
        strlen(name) >= 64)
        return diag_set(diag, STATUS_PERMANENT,
                        "\"%s\" was not made for a test and is kept", name);
    (void)snprintf(text, sizeof(text), "DROP DATABASE \"%s\"", name);
    return mysql_statement_run(session, text, diag);
}

enum status mysql_scratch(const char *url, struct buffer *out,
                          struct diag *diag)
{
    const struct db_options options = {.url = url,
                                       .busy_timeout = 5 * CLOCK_SECOND};
    struct db_session *session;
    enum status status = db_mysql_driver.connect(&options, &session, diag);

    if (status != STATUS_OK)
        return status;
    status = out != NULL ? make(session, url, out, diag) : drop(session, diag);
    db_mysql_driver.disconnect(session);
    return status;
}
