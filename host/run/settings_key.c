#include "run/settings_key.h"

#include "base/buffer.h"
#include "base/clock.h"
#include "db/url.h"

#define MILLISECOND INT64_C(1000)
#define HOUR        (3600 * CLOCK_SECOND)
#define DAY         (24 * HOUR)
#define KIB         INT64_C(1024)
#define MIB         (1024 * KIB)
#define GIB         (1024 * MIB)

#define TARGET(field) .target = offsetof(struct settings, field)

const struct settings_key settings_keys[] = {
    {.name = "database",
     .kind = SETTINGS_DATABASE,
     TARGET(database),
     .fallback = DB_URL_DEFAULT,
     .allowed = DB_URL_FORMS,
     .doc = "where the events and read models are"},
    {.name = "scripts",
     .kind = SETTINGS_TEXT,
     TARGET(scripts),
     .fallback = "handlers",
     .allowed = "the path of a folder",
     .doc = "folder of declarations"},
    {.name = "partitions",
     .kind = SETTINGS_INTEGER,
     TARGET(partitions),
     .fallback = "16",
     .min = 1,
     .max = 1024,
     .allowed = "a whole number from 1 to 1024",
     .doc = "number of partitions, fixed when the schema is created"},
    {.name = "workers",
     .kind = SETTINGS_INTEGER,
     TARGET(workers),
     .fallback = "1",
     .min = 0,
     .max = 1024,
     .allowed = "a whole number from 0 to 1024",
     .doc = "worker processes; 0: none, all in one process"},
    {.name = "batch",
     .kind = SETTINGS_INTEGER,
     TARGET(batch),
     .fallback = "5000",
     .min = 1,
     .max = 100000,
     .allowed = "a whole number from 1 to 100000",
     .doc = "messages per transaction at most"},
    {.name = "poll.min_interval",
     .kind = SETTINGS_DURATION,
     TARGET(poll_min_us),
     .fallback = "5ms",
     .min = MILLISECOND,
     .max = HOUR,
     .allowed = "a duration from \"1ms\" to \"1h\"",
     .doc = "pause between polls when busy"},
    {.name = "poll.max_interval",
     .kind = SETTINGS_DURATION,
     TARGET(poll_max_us),
     .fallback = "500ms",
     .min = MILLISECOND,
     .max = HOUR,
     .allowed = "a duration from \"1ms\" to \"1h\"",
     .doc = "pause between polls when idle"},
    {.name = "lease.duration",
     .kind = SETTINGS_DURATION,
     TARGET(lease_duration_us),
     .fallback = "10s",
     .min = 500 * MILLISECOND,
     .max = HOUR,
     .allowed = "a duration from \"500ms\" to \"1h\"",
     .doc = "a host that is not heard of for so long is replaced"},
    {.name = "lease.heartbeat",
     .kind = SETTINGS_DURATION,
     TARGET(lease_heartbeat_us),
     .fallback = "2s",
     .min = 100 * MILLISECOND,
     .max = HOUR,
     .allowed = "a duration from \"100ms\" to \"1h\"",
     .doc = "how often a host is heard of"},
    {.name = "lease.rebalance",
     .kind = SETTINGS_DURATION,
     TARGET(lease_rebalance_us),
     .fallback = "2s",
     .min = 100 * MILLISECOND,
     .max = HOUR,
     .allowed = "a duration from \"100ms\" to \"1h\"",
     .doc = "how often hosts look who is to apply which partition"},
    {.name = "retry.attempts",
     .kind = SETTINGS_INTEGER,
     TARGET(policy.retry.attempts),
     .fallback = "5",
     .min = 1,
     .max = 1000000,
     .allowed = "a whole number from 1 to 1000000",
     .doc = "how often a message is tried, the first time included"},
    {.name = "retry.delay",
     .kind = SETTINGS_DURATION,
     TARGET(policy.retry.delay_us),
     .fallback = "1s",
     .min = 0,
     .max = 365 * DAY,
     .allowed = "a duration like \"10s\" or \"5m\", up to 365 days",
     .doc = "time before the second attempt"},
    {.name = "retry.factor",
     .kind = SETTINGS_NUMBER,
     TARGET(policy.retry.factor),
     .fallback = "2",
     .min = 1,
     .max = 1000,
     .allowed = "a number from 1 to 1000",
     .doc = "each delay is so many times the one before"},
    {.name = "retry.max_delay",
     .kind = SETTINGS_DURATION,
     TARGET(policy.retry.max_delay_us),
     .fallback = "5m",
     .min = 0,
     .max = 365 * DAY,
     .allowed = "a duration like \"10s\" or \"5m\", up to 365 days",
     .doc = "no delay is longer"},
    {.name = "retry.jitter",
     .kind = SETTINGS_NUMBER,
     TARGET(policy.retry.jitter),
     .fallback = "0.2",
     .min = 0,
     .max = 1,
     .allowed = "a number from 0 to 1",
     .doc = "part by which a delay varies, up and down"},
    {.name = "on_error",
     .kind = SETTINGS_POLICY,
     TARGET(policy.on_error),
     .fallback = "halt",
     .allowed = ON_ERROR_WORDS,
     .doc = "what a message leads to whose attempts are used up"},
    {.name = "commands.keep",
     .kind = SETTINGS_DURATION,
     TARGET(commands_keep_us),
     .fallback = "7d",
     .min = HOUR,
     .max = 3650 * DAY,
     .allowed = "a duration from \"1h\" to 3650 days",
     .doc = "how long a command that is repeated under its id gives the first "
            "outcome"},
    {.name = "sagas.keep",
     .kind = SETTINGS_DURATION,
     TARGET(sagas_keep_us),
     .fallback = "30d",
     .min = 60 * CLOCK_SECOND,
     .max = 3650 * DAY,
     .allowed = "a duration from \"1m\" to 3650 days",
     .doc = "how long a completed saga is kept"},
    {.name = "limits.time",
     .kind = SETTINGS_DURATION,
     TARGET(limit_time_us),
     .fallback = "5s",
     .min = MILLISECOND,
     .max = HOUR,
     .allowed = "a duration from \"1ms\" to \"1h\"",
     .doc = "time of one handler call"},
    {.name = "limits.memory",
     .kind = SETTINGS_SIZE,
     TARGET(limit_memory),
     .fallback = "256MiB",
     .min = MIB,
     .max = 2 * GIB,
     .allowed = "a size from \"1MiB\" to \"2GiB\"",
     .doc = "memory of the scripts' Lua state"},
    {.name = "limits.payload",
     .kind = SETTINGS_SIZE,
     TARGET(limit_payload),
     .fallback = "8MiB",
     .min = 1,
     .max = 512 * MIB,
     .allowed = "a size from 1 to \"512MiB\"",
     .doc = "size of a payload and of a stored state"},
    {.name = "limits.cascade",
     .kind = SETTINGS_INTEGER,
     TARGET(limit_cascade),
     .fallback = "16",
     .min = 1,
     .max = 1000,
     .allowed = "a whole number from 1 to 1000",
     .doc = "projections that a change of a read model goes through, each "
            "reading the one before"},
    {.name = "jit",
     .kind = SETTINGS_BOOLEAN,
     TARGET(jit),
     .fallback = "false",
     .allowed = "true or false",
     .doc = "compile handlers; then a runaway one cannot be ended"},
    {.name = "grants",
     .kind = SETTINGS_LIST,
     TARGET(grants),
     .fallback = "",
     .allowed = "a list of names, like { \"os\" }",
     .doc = "library parts that scripts may use beyond the sandbox"},
    {.name = "prepare",
     .kind = SETTINGS_BOOLEAN,
     TARGET(prepare),
     .fallback = "true",
     .allowed = "true or false",
     .doc = "keep prepared statements; false behind pgbouncer"},
    {.name = "notify",
     .kind = SETTINGS_BOOLEAN,
     TARGET(notify),
     .fallback = "true",
     .allowed = "true or false",
     .doc = "be told of new events instead of only polling, and tell others"},
    {.name = "notify_url",
     .kind = SETTINGS_NOTIFY,
     TARGET(notify_url),
     .fallback = "",
     .allowed = DB_URL_FORMS,
     .doc = "direct connection to be told by, when database is a pooler's"},
    {.name = "capture.max_age",
     .kind = SETTINGS_DURATION,
     TARGET(retention.max_age_us),
     .fallback = "none",
     .or_none = true,
     .min = MILLISECOND,
     .max = 36500 * DAY,
     .allowed = "a duration from \"1ms\" to 100 years, or \"none\"",
     .doc = "captured events that are older are deleted"},
    {.name = "capture.max_rows",
     .kind = SETTINGS_COUNT,
     TARGET(retention.max_rows),
     .fallback = "none",
     .or_none = true,
     .min = 1,
     .max = INT64_C(1000000000000),
     .allowed = "a whole number from 1 to 1000000000000, or \"none\"",
     .doc = "the oldest captured events beyond so many are deleted"},
    {.name = "capture.force",
     .kind = SETTINGS_BOOLEAN,
     TARGET(retention.force),
     .fallback = "false",
     .allowed = "true or false",
     .doc = "delete them also before a slow consumer has read them"},
    {.name = "compaction.schedule",
     .kind = SETTINGS_DURATION,
     TARGET(compaction_us),
     .fallback = "1m",
     .or_none = true,
     .min = 10 * MILLISECOND,
     .max = 365 * DAY,
     .allowed = "a duration from \"10ms\" to a year, or \"none\"",
     .doc = "superseded messages of read models are deleted so often"},
    {.name = "tombstones.max_age",
     .kind = SETTINGS_DURATION,
     TARGET(tombstones_us),
     .fallback = "none",
     .or_none = true,
     .min = MILLISECOND,
     .max = 36500 * DAY,
     .allowed = "a duration from \"1ms\" to 100 years, or \"none\"",
     .doc = "tombstones of read models that are older are deleted"},
    {.name = "schema.create",
     .kind = SETTINGS_BOOLEAN,
     TARGET(schema_create),
     .fallback = "true",
     .allowed = "true or false",
     .doc = "create missing tables at start"},
    {.name = "schema.prefix",
     .kind = SETTINGS_PREFIX,
     .fallback = "",
     .allowed = "letters, digits and underscores",
     .doc = "put before the name of every table"},
    {.name = "stop_timeout",
     .kind = SETTINGS_DURATION,
     TARGET(stop_timeout_us),
     .fallback = "10s",
     .min = 0,
     .max = DAY,
     .allowed = "a duration from 0 to \"24h\"",
     .doc = "time for an orderly stop"},
    {.name = "log.level",
     .kind = SETTINGS_LEVEL,
     TARGET(log_level),
     .fallback = "info",
     .allowed = "\"debug\", \"info\", \"warn\" or \"error\"",
     .doc = "least level of a line that is logged"},
    {.name = "log.format",
     .kind = SETTINGS_FORMAT,
     TARGET(log_format),
     .allowed = "\"text\", \"logfmt\" or \"json\"",
     .doc = "form of log lines; text on a terminal, else logfmt"},
    {.name = "clock_offset",
     .kind = SETTINGS_DURATION,
     TARGET(clock_offset_us),
     .fallback = "0",
     .min = -36500 * DAY,
     .max = 36500 * DAY,
     .allowed = "a duration like \"90s\" up to 100 years, also negative",
     .doc = "shifts the host's own clock, for tests"},
    {.name = NULL},
};

/* Known, and refused until the version that brings them. */
static const char *const later_keys[] = {
    "admin.listen",
    "admin.token",
};

#define LATER_COUNT (sizeof(later_keys) / sizeof(later_keys[0]))

/* Tables whose keys are free. */
static const char *const open_tables[] = {"schema.tables", "schema.aggregates"};

#define OPEN_COUNT (sizeof(open_tables) / sizeof(open_tables[0]))

const struct settings_key *settings_key_find(const char *name)
{
    for (const struct settings_key *key = settings_keys; key->name != NULL;
         key++) {
        if (strcmp(key->name, name) == 0)
            return key;
    }
    return NULL;
}

/* All names a key may have, for the nearest one; ends with NULL. */
static void known_names(const char *names[])
{
    size_t count = 0;

    for (const struct settings_key *key = settings_keys; key->name != NULL;
         key++)
        names[count++] = key->name;
    for (size_t i = 0; i < OPEN_COUNT; i++)
        names[count++] = open_tables[i];
    for (size_t i = 0; i < LATER_COUNT; i++)
        names[count++] = later_keys[i];
    names[count] = NULL;
}

static bool lies_under(const char *name, const char *table)
{
    size_t len = strlen(table);

    return strncmp(name, table, len) == 0 && name[len] == '.';
}

static enum status key_unknown(const char *where, const char *name,
                               const char *const *names, struct diag *diag)
{
    struct buffer list = BUFFER_EMPTY;
    const char *near = text_nearest(name, names);

    if (near != NULL)
        return diag_set(diag, STATUS_CONFIG,
                        "%s: unknown key '%.200s'; did you mean '%s'?", where,
                        name, near);
    for (const struct settings_key *key = settings_keys; key->name != NULL;
         key++)
        buffer_printf(&list, "%s, ", key->name);
    buffer_append_string(&list, "schema.tables, schema.aggregates");
    diag_set(diag, STATUS_CONFIG, "%s: unknown key '%.200s'; the keys are %s",
             where, name, list.data);
    buffer_free(&list);
    return STATUS_CONFIG;
}

enum status settings_key_unknown(const char *where,
                                 const struct table_entry *entry,
                                 struct diag *diag)
{
    const char *names[SETTINGS_KEY_MAX + OPEN_COUNT + LATER_COUNT + 1];
    const char *name = entry->key;
    bool empty = entry->kind == TABLE_LIST && entry->nitems == 0;
    struct buffer inner = BUFFER_EMPTY;

    for (size_t i = 0; i < LATER_COUNT; i++) {
        if (strcmp(name, later_keys[i]) == 0 ||
            (lies_under(later_keys[i], name) && strcmp(name, "limits") != 0 &&
             !empty) ||
            lies_under(name, later_keys[i]))
            return diag_set(diag, STATUS_CONFIG,
                            "%s: %s is not available in this version; remove "
                            "it",
                            where, name);
    }
    known_names(names);
    for (size_t i = 0; names[i] != NULL; i++) {
        if (lies_under(names[i], name))
            buffer_printf(&inner, "%s%s", inner.len > 0 ? ", " : "",
                          names[i] + strlen(name) + 1);
        else if (strcmp(names[i], name) == 0)
            buffer_append_string(&inner, "names");
    }
    if (inner.len == 0)
        return key_unknown(where, name, names, diag);
    if (!empty)
        diag_set(diag, STATUS_CONFIG, "%s: %s must be a table of: %s", where,
                 name, inner.data);
    buffer_free(&inner);
    return empty ? STATUS_OK : STATUS_CONFIG;
}
