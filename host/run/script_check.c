#include "run/script_check.h"

#include "run/application.h"
#include "run/channel.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEAD 4

/* The bundle of no sane application is larger. */
#define OUT_MAX ((off_t)256 << 20)

enum status script_check_attach(pid_t supervisor, struct diag *diag)
{
    struct stat about;

    if (fstat(SCRIPT_CHECK_CHANNEL_FD, &about) != 0 ||
        !S_ISSOCK(about.st_mode) || fstat(SCRIPT_CHECK_OUT_FD, &about) != 0)
        return diag_set(diag, STATUS_USAGE,
                        "this verb is for `moontide run` only; `moontide "
                        "check` is for people");
    (void)fcntl(SCRIPT_CHECK_CHANNEL_FD, F_SETFD, FD_CLOEXEC);
    (void)fcntl(SCRIPT_CHECK_OUT_FD, F_SETFD, FD_CLOEXEC);
    (void)signal(SIGINT, SIG_IGN); /* it is the supervisor's */
    (void)signal(SIGHUP, SIG_IGN);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != supervisor)
        return diag_set(diag, STATUS_USAGE, "the supervisor %d is gone",
                        (int)supervisor);
    return STATUS_OK;
}

static enum status leave(const struct buffer *out, struct diag *diag)
{
    size_t done = 0;

    while (done < out->len) {
        ssize_t n = write(SCRIPT_CHECK_OUT_FD, out->data + done,
                          out->len - done);

        if (n < 0 && errno != EINTR)
            return diag_set(diag, STATUS_FAILED,
                            "cannot hand over the scripts: %s",
                            strerror(errno));
        if (n > 0)
            done += (size_t)n;
    }
    return STATUS_OK;
}

static enum status hand_over(const struct script *script, struct diag *diag)
{
    const struct channel_message loaded = {.type = CHANNEL_LOADED};
    struct script_version version = {.nfiles = 0};
    struct buffer description = BUFFER_EMPTY, out = BUFFER_EMPTY;
    enum status status;

    script_version_of(script, &version);
    script_version_write(&version, &description);
    script_version_free(&version);
    for (int i = 0; i < HEAD; i++)
        buffer_append_char(&out, (char)(description.len >> 8 * i & 0xff));
    buffer_append_text(&out, buffer_text(&description));
    script_bundle(script, &out);
    status = leave(&out, diag);
    if (status == STATUS_OK)
        status = channel_send(SCRIPT_CHECK_CHANNEL_FD, &loaded, diag);
    buffer_free(&description);
    buffer_free(&out);
    return status;
}

enum status script_check_run(const struct settings *settings, struct diag *diag)
{
    struct application app;
    enum status status = application_open(settings, APPLICATION_SCRIPTS, &app,
                                          diag);

    if (status != STATUS_OK)
        return status;
    status = hand_over(app.script, diag);
    application_close(&app);
    return status;
}

void script_check_tell_failure(const struct diag *diag)
{
    const struct channel_message failed = {
        .type = CHANNEL_FAILED,
        .number = diag->status,
        .text = text_of(diag->message),
    };
    struct diag gone;

    /* without a supervisor there is nobody to tell */
    (void)!channel_send(SCRIPT_CHECK_CHANNEL_FD, &failed, &gone);
}

/* --- the supervisor's side ------------------------------------------------ */

static enum status read_all(int fd, struct buffer *out, struct diag *diag)
{
    struct stat about;
    off_t done = 0;

    if (fstat(fd, &about) != 0 || about.st_size > OUT_MAX)
        return diag_set(diag, STATUS_INVALID, "the scripts are too large");
    buffer_reserve(out, (size_t)about.st_size);
    while (done < about.st_size) {
        ssize_t n = pread(fd, out->data + out->len,
                          (size_t)(about.st_size - done), done);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return diag_set(diag, STATUS_INVALID,
                            "the scripts cannot be read: %s",
                            n < 0 ? strerror(errno) : "they end too early");
        done += n;
        out->len += (size_t)n;
    }
    return STATUS_OK;
}

enum status script_check_take(int fd, struct script_version *version,
                              struct buffer *bundle, struct diag *diag)
{
    struct buffer all = BUFFER_EMPTY;
    size_t len = 0;
    enum status status = read_all(fd, &all, diag);

    for (int i = 0; i < HEAD && all.len >= HEAD; i++)
        len |= (size_t)(unsigned char)all.data[i] << 8 * i;
    if (status == STATUS_OK && (all.len < HEAD || len > all.len - HEAD))
        status = diag_set(diag, STATUS_INVALID,
                          "what was checked is no set of scripts");
    if (status == STATUS_OK)
        status = script_version_read((struct text){all.data + HEAD, len},
                                     version, diag);
    if (status == STATUS_OK) {
        assert(all.data != NULL);
        buffer_append(bundle, all.data + HEAD + len, all.len - HEAD - len);
    }
    buffer_free(&all);
    return status;
}
