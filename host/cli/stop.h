/*
 * Stop -- SIGTERM and SIGINT ask a verb to finish what it has in hand; the
 * second signal ends the process at once with 128 + its number. A closed pipe
 * is a write error, not a signal.
 */
#ifndef HOST_CLI_STOP_H
#define HOST_CLI_STOP_H

#include <signal.h>
#include <stdint.h>

/** Installs the handlers; the flag becomes 1 with the first signal. Verbs that
 * do not call this end with the signal, as usual. */
const volatile sig_atomic_t *stop_on_signals(void);

/** From now on the process ends with 1 when it has not ended by itself within
 * this time of the first signal (full seconds; stop_timeout). */
void stop_within(int64_t timeout_us);

#endif
