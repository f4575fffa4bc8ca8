/*
 * Names -- every table of the host, by area, with configured names.
 *
 * The name of a table is the prefix and then its own name; both come from the
 * configuration (schema.prefix, schema.tables). Names are checked: letters,
 * digits and underscore, not starting with a digit, at most 63 characters.
 */
#ifndef HOST_SCHEMA_NAMES_H
#define HOST_SCHEMA_NAMES_H

#include "base/status.h"
#include "db/catalog.h"

/* id, placeholder, default name, area (prefixes may differ by area) */
#define TABLE_MAP(X)                                                           \
    X(EVENT_STORE, "event_store_table", "EVENT_STORE", "event-store")          \
    X(SNAPSHOTS, "aggregate_snapshots_table", "AGGREGATE_SNAPSHOTS",           \
      "event-store")                                                           \
    X(EVENT_STORE_POSITION, "event_store_global_position_table",               \
      "EVENT_STORE_GLOBAL_POSITION", "event-store")                            \
    X(CAPTURE, "event_capture_records_table", "EVENT_CAPTURE_RECORDS",         \
      "messaging")                                                             \
    X(CAPTURE_POSITION, "event_capture_global_position_table",                 \
      "EVENT_CAPTURE_GLOBAL_POSITION", "messaging")                            \
    X(MARKS, "high_water_mark_store_table", "HIGH_WATER_MARK_STORE",           \
      "messaging")                                                             \
    X(PARTITION_METADATA, "partition_metadata_table", "PARTITION_METADATA",    \
      "messaging")                                                             \
    X(READ_MODEL_RECORDS, "read_model_capture_records_table",                  \
      "READ_MODEL_CAPTURE_RECORDS", "messaging")                               \
    X(READ_MODEL_POSITIONS, "read_model_capture_positions_table",              \
      "READ_MODEL_CAPTURE_POSITIONS", "messaging")                             \
    X(READ_MODEL_TOPICS, "read_model_topics_table", "READ_MODEL_TOPICS",       \
      "messaging")                                                             \
    X(TOPIC_COMPACTION, "topic_compaction_table", "TOPIC_COMPACTION",          \
      "messaging")                                                             \
    X(CONSUMERS, "consumers_table", "CONSUMERS", "messaging")                  \
    X(CHECKPOINTS, "consumer_checkpoints_table", "CONSUMER_CHECKPOINTS",       \
      "messaging")                                                             \
    X(UNDELIVERED, "consumer_undelivered_messages_table",                      \
      "CONSUMER_UNDELIVERED_MESSAGES", "messaging")                            \
    X(SKIPPED, "consumer_skipped_messages_table", "CONSUMER_SKIPPED_MESSAGES", \
      "messaging")                                                             \
    X(INSTANCES, "partition_instances_table", "PARTITION_INSTANCES",           \
      "messaging")                                                             \
    X(OWNERSHIP, "partition_ownership_table", "PARTITION_OWNERSHIP",           \
      "messaging")                                                             \
    X(MEMBERS, "partition_members_table", "PARTITION_MEMBERS", "messaging")    \
    X(EPOCHS, "read_model_epochs_table", "READ_MODEL_EPOCHS", "cqrs")          \
    X(SAGA_INSTANCES, "saga_instances_table", "SAGA_INSTANCES", "saga")        \
    X(SAGA_DEADLINES, "saga_deadlines_table", "SAGA_DEADLINES", "saga")        \
    X(SAGA_STEPS, "saga_steps_table", "SAGA_STEPS", "saga")                    \
    X(COMMAND_RESULTS, "command_results_table", "COMMAND_RESULTS", "saga")     \
    X(OUTBOX, "outbox_table", "OUTBOX", "outbox")                              \
    X(SCRIPT_VERSIONS, "script_versions_table", "SCRIPT_VERSIONS",             \
      "messaging")                                                             \
    X(SCHEMA_VERSION, "schema_version_table", "MOONTIDE_SCHEMA", "messaging")

enum table_id {
#define TABLE_ENUM(id, placeholder, name, area) TABLE_##id,
    TABLE_MAP(TABLE_ENUM)
#undef TABLE_ENUM
        TABLE_COUNT
};

#define TABLE_NAME_MAX 63

/** Own tables of one aggregate type (schema.aggregates). */
struct aggregate_tables {
    const char *aggregate_type;
    char events[TABLE_NAME_MAX + 1];
    char snapshots[TABLE_NAME_MAX + 1];
};

/** The configured names. Owned by the settings; immutable afterwards. */
struct names { /* never moved or copied: `fill` points into `table` */
    char table[TABLE_COUNT][TABLE_NAME_MAX + 1];
    char prefix[TABLE_NAME_MAX + 1];
    struct aggregate_tables *aggregates;
    size_t naggregates;
    /* the same as placeholder values for the catalog, NULL-terminated */
    struct catalog_name fill[TABLE_COUNT + 1];
};

/** Default names without a prefix. */
void names_default(struct names *names);

/** Puts `prefix` before every table. CONFIG when a name gets too long or has
 * other characters. Call before names_set. */
enum status names_prefix(struct names *names, const char *prefix,
                         struct diag *diag) MUST_CHECK;

/** Sets one table by its default name in either case or its placeholder
 * without "_table" ("CONSUMERS", "consumers"). A set name takes the prefix
 * too. CONFIG for an unknown table (with the nearest known one). */
enum status names_set(struct names *names, const char *table, const char *value,
                      struct diag *diag) MUST_CHECK;

/** Gives an aggregate type its own event table and, when `snapshots` is not
 * NULL, its own snapshot table (no prefix is added). */
enum status names_aggregate(struct names *names, const char *aggregate_type,
                            const char *events, const char *snapshots,
                            struct diag *diag) MUST_CHECK;

/** CONFIG unless all names are distinct (two tables of one name). */
enum status names_check(const struct names *names,
                        struct diag *diag) MUST_CHECK;

void names_free(struct names *names);

/**
 * All tables, own ones included: index 0 .. names_tables - 1, the first
 * TABLE_COUNT of them in the order of enum table_id. names_table gives the
 * name and which table of TABLE_MAP it is shaped like; NULL for a snapshot
 * table that an aggregate type does not have of its own. names_owner gives the
 * aggregate type of an own table, NULL for a shared one.
 */
size_t names_tables(const struct names *names);
const char *names_table(const struct names *names, size_t index,
                        enum table_id *like);
const char *names_owner(const struct names *names, size_t index);

/** The placeholder of a table, without ${}. */
const char *names_placeholder(enum table_id id);

/** CONFIG unless `name` may be used as a table or column name. `what` is put
 * into the message. */
enum status names_identifier(const char *what, const char *name,
                             struct diag *diag) MUST_CHECK;

/** The same for a table, whose name must not begin as the names that databases
 * keep for themselves do ("sqlite_", "pg_"). */
enum status names_table_name(const char *what, const char *name,
                             struct diag *diag) MUST_CHECK;

#endif
