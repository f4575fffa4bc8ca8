/*
 * Script -- one loaded application: a Lua state with the sandbox, every file
 * of the scripts folder, and what they declare. A reload is a new script.
 *
 * One thread; no state is shared between scripts. Only script/lua_call.c
 * calls lua_pcall.
 */
#ifndef HOST_SCRIPT_SCRIPT_H
#define HOST_SCRIPT_SCRIPT_H

#include "base/clock.h"
#include "base/log.h"
#include "model/event_types.h"
#include "model/handler.h"
#include "model/publisher.h"
#include "script/source_set.h"
#include "topic/append.h"

struct attempt_slot; /* consumer/attempt_slot.h */
struct script;       /* script/script.c */

struct script_limits {
    int64_t time_us; /* per handler call */
    int64_t memory;  /* bytes per state */
    int64_t payload; /* bytes per stored state */
};

struct script_options {
    const char *app_dir; /* folder of moontide.conf.lua */
    const char *scripts; /* folder of declarations, relative to app_dir */
    struct text bundle;  /* load this and nothing from the disk; NULL: no */
    const char *dialect; /* picks SQL texts given per dialect */
    int partitions;
    struct script_limits limits;
    struct failure_policy policy; /* where a declaration does not say */
    bool jit;
    const char *const *grants; /* NULL-terminated names, or NULL */
    const struct clock *clock;
    const struct log *log;
};

/**
 * Loads and checks every file. CONFIG: the first error as
 * "handlers/x.lua:12: what, and what to do". INVALID: a damaged bundle.
 */
enum status script_open(const struct script_options *options,
                        struct script **script, struct diag *diag) MUST_CHECK;
void script_close(struct script *script); /* NULL is allowed */

/** The consumers that were declared, in the order of files (sorted) and of
 * their lists. */
const struct declaration *script_declarations(const struct script *script,
                                              size_t *count);

/** What was loaded: a digest of all files that were read, which differs when
 * any byte or name of them does. */
const char *script_version(const struct script *script);

/** The files that were read, sorted by name: handlers, what they require, SQL
 * files. */
const struct source_digest *script_files(const struct script *script,
                                         size_t *count);

/** Appends the files as they were read, for script_options.bundle. */
void script_bundle(const struct script *script, struct buffer *out);

/** Warnings of the load (upvalues assigned in handlers ...), NULL-terminated,
 * owned by the script. */
const char *const *script_warnings(const struct script *script);

/**
 * What the event types ask of events that are about to be appended, each as by
 * script/event_check.h: fills revisions and checks payloads. INVALID; *bad is
 * the index of the event.
 */
enum status script_check_events(struct script *script,
                                struct append_event *events, size_t count,
                                size_t *bad, struct diag *diag) MUST_CHECK;

/** The declared aggregates. */
const struct declaration *script_aggregates(const struct script *script,
                                            size_t *count);

/** The declared event types. */
const struct event_types *script_event_types(const struct script *script);

/** The declared publishers, by name. */
const struct publishers *script_publishers(const struct script *script);

/** User code for the models. */
struct handler script_handler(struct script *script);

/** Says in the slot which call of user code is under way, from now on.
 * Borrowed; NULL: nowhere. */
void script_watch(struct script *script, struct attempt_slot *slot);

/** Makes the next `times` calls of the handler fail with "failure asked for
 * by the test". Testing kit only. */
void script_fail_next(struct script *script, const char *consumer,
                      const char *type, int times);

/** Bytes in use by the Lua state. */
int64_t script_memory(const struct script *script);

#endif
