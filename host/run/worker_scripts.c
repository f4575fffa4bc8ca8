#include "run/worker_scripts.h"

#include "run/backoff.h"
#include "run/worker.h"

enum status worker_scripts_read(const struct script_place *place,
                                struct buffer *bundle, struct diag *diag)
{
    return script_store_read(WORKER_SCRIPTS_FD, place, bundle, diag);
}

enum status worker_scripts_verify(const struct script *script,
                                  const struct script_place *place,
                                  struct diag *diag)
{
    if (strcmp(script_version(script), place->hash) == 0)
        return STATUS_OK;
    return diag_set(diag, STATUS_INVALID,
                    "the scripts are not those that were checked (%s and not "
                    "%s)",
                    script_version(script), place->hash);
}

enum status worker_scripts_order(struct worker_scripts *scripts,
                                 const struct channel_message *message,
                                 struct diag *diag)
{
    struct buffer text = BUFFER_EMPTY;
    enum status status;

    buffer_append_text(&text, message->text);
    status = script_place_read(buffer_text(&text).data, &scripts->place, diag);
    buffer_free(&text);
    scripts->ordered = status == STATUS_OK;
    scripts->terms = (struct reload_terms){
        .accept = (message->number & CHANNEL_SWITCH_ACCEPT) != 0,
        .checked = (message->number & CHANNEL_SWITCH_FIRST) == 0,
    };
    return status;
}

static enum status load(const struct worker_scripts *scripts,
                        struct application *app, struct script **script_out,
                        struct diag *diag)
{
    struct buffer bundle = BUFFER_EMPTY;
    struct script *script;
    enum status status = worker_scripts_read(&scripts->place, &bundle, diag);

    if (status == STATUS_OK)
        status = application_script(app, buffer_text(&bundle), &script, diag);
    buffer_free(&bundle);
    if (status != STATUS_OK)
        return status;
    status = worker_scripts_verify(script, &scripts->place, diag);
    if (status != STATUS_OK)
        script_close(script);
    else
        *script_out = script;
    return status;
}

static enum status answer(const struct worker_scripts *scripts,
                          enum status status, const struct diag *why,
                          struct diag *diag)
{
    struct channel_message message = {
        .type = CHANNEL_SWITCHED,
        .text = text_of(scripts->place.hash),
    };

    if (status != STATUS_OK)
        message = (struct channel_message){
            .type = CHANNEL_KEPT,
            .number = status,
            .text = text_of(why->message),
        };
    return channel_send(WORKER_CHANNEL_FD, &message, diag);
}

enum status worker_scripts_follow(struct worker_scripts *scripts,
                                  struct application *app, struct host *host,
                                  struct diag *diag)
{
    struct script *script = NULL;
    struct diag why;
    enum status status;

    if (!scripts->ordered)
        return STATUS_OK;
    status = load(scripts, app, &script, &why);
    if (status == STATUS_OK) {
        status = host_switch(host, script, &scripts->terms, &why);
        if (status != STATUS_OK)
            script_close(script);
    }
    if (backoff_helps(status)) {
        *diag = why;
        return status;
    }
    scripts->ordered = false;
    return answer(scripts, status, &why, diag);
}
