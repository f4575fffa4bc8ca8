#include "run/script_duty.h"

#include "base/memory.h"
#include "run/backoff.h"
#include "run/undeclared.h"

void script_duty_open(struct script_duty *duty)
{
    struct uuid_source fresh = {.last_ms = 0};

    *duty = (struct script_duty){.host = uuid_v7(&fresh, clock_now(NULL))};
    pthread_mutex_init(&duty->mutex, NULL);
}

void script_duty_close(struct script_duty *duty)
{
    for (size_t i = 0; i < duty->count; i++)
        script_record_free(&duty->items[i]);
    mem_free(duty->items);
    pthread_mutex_destroy(&duty->mutex);
}

void script_duty_add(struct script_duty *duty, struct script_record *record)
{
    pthread_mutex_lock(&duty->mutex);
    duty->items = mem_grow(duty->items, duty->count + 1, sizeof(*duty->items));
    duty->items[duty->count++] = *record;
    pthread_mutex_unlock(&duty->mutex);
    *record = (struct script_record){.live = false};
}

bool script_duty_waits(struct script_duty *duty)
{
    bool waits;

    pthread_mutex_lock(&duty->mutex);
    waits = duty->count > 0;
    pthread_mutex_unlock(&duty->mutex);
    return waits;
}

/* The oldest that waits; false: none. Its texts are borrowed. */
static bool first(struct script_duty *duty, struct script_record *record)
{
    bool found;

    pthread_mutex_lock(&duty->mutex);
    found = duty->count > 0;
    if (found)
        *record = duty->items[0];
    pthread_mutex_unlock(&duty->mutex);
    return found;
}

static void drop_first(struct script_duty *duty)
{
    pthread_mutex_lock(&duty->mutex);
    script_record_free(&duty->items[0]);
    duty->count--;
    memmove(duty->items, duty->items + 1, duty->count * sizeof(*duty->items));
    pthread_mutex_unlock(&duty->mutex);
}

enum status script_duty_step(struct script_duty *duty, struct application *app,
                             struct diag *diag)
{
    int64_t now = clock_monotonic();
    struct script_record record;
    enum status status = STATUS_OK;

    while (status == STATUS_OK && first(duty, &record)) {
        if (record.live && !duty->told)
            status = undeclared_tell(app, buffer_text(&record.declared), diag);
        duty->told = status == STATUS_OK;
        if (status == STATUS_OK)
            status = script_record_write(app, &duty->host, &record, diag);
        if (backoff_helps(status))
            return status;
        if (status != STATUS_OK)
            log_write(&app->log, LOG_WARN, NULL,
                      "the version of the scripts could not be recorded: %s",
                      diag->message);
        duty->live |= record.live && status == STATUS_OK;
        duty->seen_at = now;
        status = STATUS_OK;
        duty->told = false;
        drop_first(duty);
    }
    if (duty->live && now - duty->seen_at >= SCRIPT_RECORD_SEEN_US) {
        status = script_record_seen(app, &duty->host, false, diag);
        if (status == STATUS_OK)
            duty->seen_at = now;
    }
    return status;
}

enum status script_duty_end(struct script_duty *duty, struct application *app,
                            struct diag *diag)
{
    enum status status = script_duty_step(duty, app, diag);

    if (status == STATUS_OK && duty->live)
        status = script_record_seen(app, &duty->host, true, diag);
    return status;
}
