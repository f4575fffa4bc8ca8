/*
 * Script duty -- the part of the supervisor's duties that keeps SCRIPT_VERSIONS
 * (run/script_record.h): the loop says what the host has taken or refused, the
 * thread with the database writes it down.
 */
#ifndef HOST_RUN_SCRIPT_DUTY_H
#define HOST_RUN_SCRIPT_DUTY_H

#include "run/script_record.h"

#include <pthread.h>

struct script_duty {
    pthread_mutex_t mutex;
    struct script_record *items; /* behind it: to be written, in this order */
    size_t count;
    /* of the thread alone */
    struct uuid host; /* of this run */
    bool told;        /* of the first that waits: what it does not declare */
    bool live;        /* a live one was written */
    int64_t seen_at;  /* monotonic: when that was last said */
};

void script_duty_open(struct script_duty *duty);
void script_duty_close(struct script_duty *duty);

/** The loop's side; takes the texts over. */
void script_duty_add(struct script_duty *duty, struct script_record *record);

/** Whether something waits to be written. Any thread. */
bool script_duty_waits(struct script_duty *duty);
/** The thread's side: writes what waits, and says that the host still runs. */
enum status script_duty_step(struct script_duty *duty, struct application *app,
                             struct diag *diag) MUST_CHECK;
/** The host ends. */
enum status script_duty_end(struct script_duty *duty, struct application *app,
                            struct diag *diag) MUST_CHECK;

#endif
