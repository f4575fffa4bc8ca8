#include "run/config_change.h"

#include "base/buffer.h"

#define CONFIG_MAX ((size_t)1 << 20)

static bool digest_file(const struct settings *settings,
                        char out[DIGEST_LEN + 1])
{
    struct buffer bytes = BUFFER_EMPTY;
    struct digest digest;
    bool good = settings->config_path != NULL &&
                buffer_read_file(&bytes, settings->config_path, CONFIG_MAX,
                                 NULL) == STATUS_OK;

    digest_begin(&digest);
    digest_text(&digest, good ? buffer_text(&bytes) : TEXT_NONE);
    digest_end(&digest, out);
    buffer_free(&bytes);
    return good;
}

void config_change_begin(struct config_change *change,
                         const struct settings *settings)
{
    change->settings = settings;
    change->told = false;
    (void)digest_file(settings, change->read);
}

void config_change_tell(struct config_change *change, const struct log *log)
{
    char now[DIGEST_LEN + 1];
    bool same;

    if (!digest_file(change->settings, now))
        return;
    same = strcmp(now, change->read) == 0;
    if (!same && !change->told)
        log_write(log, LOG_WARN, NULL,
                  "%s has changed: a reload takes scripts only, so restart "
                  "the host to take the configuration",
                  change->settings->config_path);
    change->told = !same;
}
