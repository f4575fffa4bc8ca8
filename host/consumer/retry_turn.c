#include "consumer/retry_turn.h"

#include "consumer/retry.h"

/* Undelivered messages are looked at so often although none is due: an
 * operator may have settled some. */
#define LOOK_EVERY_US (2 * CLOCK_SECOND)

/* Looking for what is due takes a part of the time like one in so many. */
#define LOOK_SHARE 20

/* While there are pages, retries that come due one by one are gathered, so that
 * all of them together take one part in so many of the time; none of them waits
 * longer for that. */
#define GATHER_SHARE  10
#define GATHER_MAX_US CLOCK_SECOND

bool retry_turn_is_awaited(const struct consumer *c)
{
    return consumer_runs(c) && c->retries.any &&
           c->retries.next_at != INT64_MAX;
}

void retry_turn_now(struct consumer *c)
{
    c->retries.next_at = 0;
    c->retries.not_before = 0;
}

bool retry_turn_is_due(const struct consumer *c)
{
    const struct consumer_retries *r = &c->retries;
    int64_t now = consumer_time(c->env);

    if (!r->any || now < r->not_before)
        return false;
    return consumer_clock(c->env) >= r->next_at ||
           now - r->looked_at >= LOOK_EVERY_US;
}

bool retry_turn_comes(const struct consumer *c)
{
    return !c->retries.yields && retry_turn_is_due(c) &&
           consumer_time(c->env) >= c->retries.gathers;
}

/* When pages have had their part of the time after a look that took so long. */
static int64_t gather_until(const struct consumer_retries *r, int64_t took_us)
{
    int64_t pages = (GATHER_SHARE - 1) * took_us;

    return r->looked_at + (pages < GATHER_MAX_US ? pages : GATHER_MAX_US);
}

static bool any_blocked(const struct consumer *c)
{
    for (int p = 0; p < c->held.partitions; p++)
        if (leases_hold(&c->leases, p) && c->held.blocked[p])
            return true;
    return false;
}

enum status retry_turn_take(struct consumer *c, bool *worked, struct diag *diag)
{
    struct consumer_retries *r = &c->retries;
    int64_t began = consumer_time(c->env);
    bool blocked = any_blocked(c);
    enum status status = retry_due(c, worked, diag);

    if (status != STATUS_OK)
        return status;
    r->looked_at = consumer_time(c->env);
    r->doubtful = false;
    r->not_before = *worked
                        ? 0
                        : r->looked_at + LOOK_SHARE * (r->looked_at - began);
    if (blocked && !*worked)
        c->held_known = false;
    /* pages and retries take turns, unless some partitions would be read
     * apart from the others for that */
    r->yields = *worked && !blocked;
    r->gathers = r->yields && !r->cut ? gather_until(r, r->looked_at - began)
                                      : 0;
    return STATUS_OK;
}
