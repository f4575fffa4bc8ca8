/*
 * Test host -- an application and its host in this process, driven step by
 * step: what the testing kit stands on. Nothing here knows Lua's stack.
 */
#ifndef HOST_RUN_TEST_HOST_H
#define HOST_RUN_TEST_HOST_H

#include "run/host.h"
#include "run/reload.h"
#include "topic/append.h"

struct test_host {
    struct settings settings; /* owned */
    struct application app;
    struct host *host;          /* NULL: not opened yet */
    volatile sig_atomic_t stop; /* never set: a run ends when idle */
};

/** Opens the application in `app_dir` with the configuration table at `index`
 * of a Lua stack. `late`: the host, which registers the consumers and lets
 * halted ones try again, is opened by the first run. */
enum status test_host_open(struct lua_State *L, int index, const char *app_dir,
                           bool late, struct test_host **host,
                           struct diag *diag) MUST_CHECK;
void test_host_close(struct test_host *host); /* NULL is allowed */

/** Appends in one transaction; `results` has one per event. */
enum status test_host_append(struct test_host *host,
                             struct append_event *events, size_t count,
                             struct append_result *results,
                             struct diag *diag) MUST_CHECK;

/** The same for events that are captured. */
enum status test_host_emit(struct test_host *host, struct append_event *events,
                           size_t count, struct append_result *results,
                           struct diag *diag) MUST_CHECK;

/** Runs until nothing is left. A halted consumer is no error here. */
enum status test_host_run(struct test_host *host,
                          struct host_progress *progress,
                          struct diag *diag) MUST_CHECK;

/** Commits the next batch, throws its answer away and reconnects; or, when
 * there is none, forgets the newest one. Then runs to the end. */
enum status test_host_redeliver(struct test_host *host,
                                struct diag *diag) MUST_CHECK;

/** Closes and opens the host again, as a restart of the process would. */
enum status test_host_restart(struct test_host *host,
                              struct diag *diag) MUST_CHECK;

/** Takes the scripts as they lie there now, see host_reload;
 * reload_report_free is owed when it returns OK. */
enum status test_host_reload(struct test_host *host, bool accept,
                             struct reload_report *report,
                             struct diag *diag) MUST_CHECK;

/** The declaration of that name, or USAGE with the nearest. */
enum status test_host_declaration(struct test_host *host, const char *name,
                                  const struct declaration **declaration,
                                  struct diag *diag) MUST_CHECK;

#endif
