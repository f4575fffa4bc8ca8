#include "db/postgres.h"

#include "base/clock.h"
#include "base/uuid.h"

/* What a scratch schema is called; nothing else is ever dropped. */
#define NAME    "moontide_scratch_"
#define PREFIX  "options=-csearch_path%3D" NAME
#define HEX_LEN 32

static enum status run(const char *url, const char *script, struct diag *diag)
{
    const struct db_options options = {.url = url,
                                       .busy_timeout = 10 * CLOCK_SECOND};
    struct db_session *session;
    enum status status = db_postgres_driver.connect(&options, &session, diag);

    if (status != STATUS_OK)
        return status;
    status = postgres_statement_script(session, text_of(script), DB_HOST, diag);
    db_postgres_driver.disconnect(session);
    return status;
}

static enum status make(const char *url, struct buffer *out, struct diag *diag)
{
    struct uuid_source source = {0};
    struct uuid uuid = uuid_v7(&source, clock_now(NULL));
    struct buffer script = BUFFER_EMPTY;
    char hex[HEX_LEN + 1];
    enum status status;

    for (size_t i = 0; i < sizeof(uuid.bytes); i++) {
        hex[2 * i] = "0123456789abcdef"[uuid.bytes[i] >> 4];
        hex[2 * i + 1] = "0123456789abcdef"[uuid.bytes[i] & 15];
    }
    hex[HEX_LEN] = '\0';
    buffer_printf(&script, "CREATE SCHEMA " NAME "%s", hex);
    status = run(url, script.data, diag);
    buffer_free(&script);
    if (status == STATUS_OK)
        buffer_printf(out, "%s%c%s%s", url,
                      strchr(url, '?') != NULL ? '&' : '?', PREFIX, hex);
    return status;
}

static enum status drop(const char *url, struct diag *diag)
{
    const char *found = strstr(url, PREFIX);
    struct buffer script = BUFFER_EMPTY;
    enum status status;

    if (found == NULL || strlen(found) != strlen(PREFIX) + HEX_LEN ||
        strspn(found + strlen(PREFIX), "0123456789abcdef") != HEX_LEN)
        return diag_set(diag, STATUS_PERMANENT,
                        "the URL's schema was not made for a test and is kept");
    buffer_printf(&script, "DROP SCHEMA IF EXISTS " NAME "%s CASCADE",
                  found + strlen(PREFIX));
    status = run(url, script.data, diag);
    buffer_free(&script);
    return status;
}

enum status postgres_scratch(const char *url, struct buffer *out,
                             struct diag *diag)
{
    return out != NULL ? make(url, out, diag) : drop(url, diag);
}
