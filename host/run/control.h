/*
 * Control -- how a verb speaks to the hosts that run an application on this
 * machine: a Unix socket without a file, whose name is made of the user and
 * the application's folder. One line is asked, one line is answered. Only the
 * same user (and root) is heard.
 */
#ifndef HOST_RUN_CONTROL_H
#define HOST_RUN_CONTROL_H

#include "base/buffer.h"
#include "base/status.h"

#include <stdbool.h>
#include <uv.h>

#define CONTROL_HOSTS_MAX 16 /* of one application on one machine */
#define CONTROL_LINE_MAX  256

struct control;       /* run/control.c */
struct control_asker; /* who waits for an answer */

/** Answer with control_answer, now or later, exactly once. */
typedef void (*control_ask_fn)(void *arg, struct control_asker *asker,
                               const char *line);

/** FAILED: there can be no such socket, or all its names are taken. */
enum status control_open(uv_loop_t *loop, const char *app_dir,
                         control_ask_fn ask, void *arg,
                         struct control **control,
                         struct diag *diag) MUST_CHECK;
/** Sends a line and hangs up. One that is gone by then is no trouble. */
void control_answer(struct control_asker *asker, struct text line);
/** Ends it; its memory is given back by the loop. Whoever waits was answered
 * before. NULL is allowed. */
void control_close(struct control *control);

/** A verb's side: what one host answers; valid during the call. */
typedef enum status (*control_answer_fn)(void *arg, struct text line,
                                         struct diag *diag);

/** Asks every host of the application and waits for each. UNAVAILABLE when
 * none runs; FAILED when one ends without an answer. *hosts: how many were
 * asked. */
enum status control_ask(const char *app_dir, const char *line,
                        control_answer_fn fn, void *arg, int *hosts,
                        struct diag *diag) MUST_CHECK;

#endif
