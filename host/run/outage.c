#include "run/outage.h"

#include <assert.h>
#include <stdio.h>

static struct outage_kind *kind_of(struct outage *outage, enum status status)
{
    switch (status) {
    case STATUS_LOST:
        return &outage->kinds[0];
    case STATUS_BUSY:
        return &outage->kinds[1];
    case STATUS_CONFLICT:
        return &outage->kinds[2];
    default:
        return &outage->kinds[3];
    }
}

void outage_begin(struct outage *outage, enum status status, struct text why,
                  int64_t now)
{
    struct outage_kind *kind = kind_of(outage, status);

    if (kind->workers++ == 0) {
        kind->since = now;
        text_clean(why, kind->why, sizeof(kind->why));
    }
    outage->now++;
    outage->met++;
}

bool outage_end(struct outage *outage)
{
    assert(outage->now > 0);
    return --outage->now == 0;
}

bool outage_line(struct outage *outage, int workers, int64_t now,
                 char line[OUTAGE_LINE_SIZE])
{
    for (int i = 0; i < OUTAGE_KINDS; i++) {
        struct outage_kind *kind = &outage->kinds[i];

        if (kind->workers == 0 || kind->told ||
            now - kind->since < OUTAGE_GATHER_US)
            continue;
        kind->told = true;
        if (workers == 1)
            (void)snprintf(line, OUTAGE_LINE_SIZE, "%s; trying again",
                           kind->why);
        else
            (void)snprintf(line, OUTAGE_LINE_SIZE,
                           "%d of %d workers: %s; trying again", kind->workers,
                           workers, kind->why);
        return true;
    }
    return false;
}

void outage_over(struct outage *outage, int workers,
                 char line[OUTAGE_LINE_SIZE])
{
    if (workers == 1)
        (void)snprintf(line, OUTAGE_LINE_SIZE, "the database works again");
    else
        (void)snprintf(line, OUTAGE_LINE_SIZE,
                       "the database works again, for each of %d workers",
                       outage->met);
    *outage = (struct outage){.now = 0};
}
