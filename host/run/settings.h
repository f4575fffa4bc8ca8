/*
 * Settings -- the configuration keys, each a row of one table in settings.c:
 * name, kind, default, environment, doc text, and whether it is available yet.
 * `moontide check`, `--help`, errors and the manual all come from that table.
 *
 * Precedence: command line, environment, moontide.conf.lua, default.
 */
#ifndef HOST_RUN_SETTINGS_H
#define HOST_RUN_SETTINGS_H

#include "base/buffer.h"
#include "base/log.h"
#include "consumer/policy.h"
#include "schema/names.h"
#include "topic/retention.h"

struct lua_State;

/** Owned by the caller; settings_free. Strings are copies. Never moved or
 * copied: the names point into themselves. */
struct settings {
    char *app_dir;        /* folder that relative paths start from */
    char *config_path;    /* NULL: there is no file, all is default */
    struct buffer config; /* what stood in it */
    char *database;
    char *scripts;
    int partitions;
    int workers; /* processes; 0: none, all in this process */
    int batch;
    int64_t poll_min_us;
    int64_t poll_max_us;
    int64_t lease_duration_us;  /* an instance lives so long unheard */
    int64_t lease_heartbeat_us; /* and is heard so often */
    int64_t lease_rebalance_us; /* who applies what is looked at so often */
    int64_t limit_time_us;
    int64_t limit_memory;
    int64_t limit_payload;
    int limit_cascade;            /* applies of a chain of read models */
    int64_t commands_keep_us;     /* how long results of commands are kept */
    int64_t sagas_keep_us;        /* the same of completed sagas */
    struct failure_policy policy; /* of consumers that say nothing else */
    bool jit;
    char **grants;    /* NULL-terminated */
    bool prepare;     /* keep prepared statements on the server */
    bool notify;      /* be told that there is something new, and tell others */
    char *notify_url; /* for that; "": `database` */
    struct retention_policy retention; /* of the capture topic */
    int64_t compaction_us;             /* pause between two runs; 0: none */
    int64_t tombstones_us;             /* kept so long; 0: for good */
    bool schema_create;
    struct names names;
    enum log_level log_level;
    enum log_format log_format;
    int64_t stop_timeout_us;
    int64_t clock_offset_us;
    struct settings_origins *origins; /* where each value came from */
};

struct settings_source {
    const char *config_path; /* --config; NULL: moontide.conf.lua if there */
    /** What stood there when somebody else has read it; data NULL: it is read.
     * Empty: there was no file. */
    struct text config;
    const char *database; /* --database; NULL: DATABASE_URL, then file */
    bool in_memory;       /* testing kit: no file, entries only */
};

/** Reads the configuration. CONFIG: unknown key (with the nearest known one),
 * a key that is not available yet, a value of the wrong kind or out of range;
 * with file and key. */
enum status settings_load(const struct settings_source *source,
                          struct settings *settings,
                          struct diag *diag) MUST_CHECK;

/** The same from a Lua table (testing kit). `app_dir` is copied. */
enum status settings_from_table(struct lua_State *L, int index,
                                const char *app_dir, struct settings *settings,
                                struct diag *diag) MUST_CHECK;

/** Why the database does not take so many workers; NULL when it does. */
const char *settings_refuse_workers(const struct settings *settings,
                                    int workers);

void settings_free(struct settings *settings);

/** Appends "key = value (origin)" lines, secrets masked. */
void settings_print(const struct settings *settings, bool json,
                    struct buffer *out);

#endif
