#include "cli/cli.h"
#include "cli/template.h"

#include "base/json.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static enum status make_folder(const char *path, struct diag *diag)
{
    if (mkdir(path, 0777) == 0 || errno == EEXIST)
        return STATUS_OK;
    return diag_set(diag, STATUS_FAILED, "cannot make the folder %s: %s", path,
                    strerror(errno));
}

/* OK when the folder is there and empty. */
static enum status check_empty(const char *path, struct diag *diag)
{
    DIR *folder = opendir(path);
    struct dirent *entry;
    bool empty = true;

    if (folder == NULL)
        return diag_set(diag, STATUS_FAILED, "cannot use %s: %s", path,
                        strerror(errno));
    while ((entry = readdir(folder)) != NULL)
        empty = empty && (strcmp(entry->d_name, ".") == 0 ||
                          strcmp(entry->d_name, "..") == 0);
    closedir(folder);
    if (!empty)
        return diag_set(diag, STATUS_REFUSED,
                        "%s is not empty; nothing was written, give a new "
                        "folder",
                        path);
    return STATUS_OK;
}

/* The folders of `path` between `from` and its last part. */
static enum status make_parents(char *path, size_t from, struct diag *diag)
{
    enum status status = STATUS_OK;

    for (char *slash = strchr(path + from, '/');
         status == STATUS_OK && slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        status = make_folder(path, diag);
        *slash = '/';
    }
    return status;
}

/* Beside an installed program lies PREFIX/share/moontide/meta. False: not. */
static bool find_annotations(char folder[PATH_MAX])
{
    static const char tail[] = "/share/moontide/meta";
    char program[PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", program, sizeof(program) - 1);

    if (len <= 0)
        return false;
    program[len] = '\0';
    for (int i = 0; i < 2; i++) { /* PREFIX/bin/moontide */
        char *slash = strrchr(program, '/');

        if (slash == NULL)
            return false;
        *slash = '\0';
    }
    len = snprintf(folder, PATH_MAX, "%s%s", program, tail);
    return len < PATH_MAX && access(folder, R_OK | X_OK) == 0;
}

/* The text with the folder of annotations filled in. */
static void fill_text(const char *text, struct buffer *out)
{
    const char *mark = strstr(text, TEMPLATE_ANNOTATIONS);
    char folder[PATH_MAX];

    if (mark == NULL) {
        buffer_append_string(out, text);
        return;
    }
    buffer_append(out, text, (size_t)(mark - text));
    if (find_annotations(folder)) {
        json_write_string(out, text_of(folder));
        buffer_append_string(out, ", ");
    }
    buffer_append_string(out, mark + strlen(TEMPLATE_ANNOTATIONS));
}

static enum status write_file(const char *path, const char *text,
                              struct diag *diag)
{
    /* never over a file that somebody put there meanwhile */
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;
    bool good = file != NULL && fputs(text, file) != EOF;

    if (file != NULL)
        good = fclose(file) == 0 && good;
    else if (fd >= 0)
        close(fd);
    if (!good)
        return diag_set(diag, STATUS_FAILED, "cannot write %s: %s", path,
                        strerror(errno));
    return STATUS_OK;
}

static enum status write_filled(const char *path, const char *text,
                                struct diag *diag)
{
    struct buffer filled = BUFFER_EMPTY;
    enum status status;

    fill_text(text, &filled);
    status = write_file(path, filled.data, diag);
    buffer_free(&filled);
    return status;
}

static enum status write_files(const char *folder, struct diag *diag)
{
    char path[PATH_MAX];
    enum status status = STATUS_OK;

    for (const struct template_file *file = template_files;
         status == STATUS_OK && file->path != NULL; file++) {
        int len = snprintf(path, sizeof(path), "%s/%s", folder, file->path);

        if (len < 0 || (size_t)len >= sizeof(path))
            return diag_set(diag, STATUS_USAGE,
                            "the path %.200s... is too "
                            "long",
                            folder);
        status = make_parents(path, strlen(folder) + 1, diag);
        if (status == STATUS_OK)
            status = write_filled(path, file->text, diag);
    }
    return status;
}

static void print_result(struct cli *cli, const char *folder)
{
    struct buffer out = BUFFER_EMPTY;

    if (cli->json) {
        buffer_append_string(&out, "{\"folder\":");
        json_write_string(&out, text_of(folder));
        buffer_append_string(&out, ",\"files\":[");
        for (size_t i = 0; template_files[i].path != NULL; i++) {
            if (i > 0)
                buffer_append_char(&out, ',');
            json_write_string(&out, text_of(template_files[i].path));
        }
        buffer_append_string(&out, "]}\n");
        fwrite(out.data, 1, out.len, cli->out);
        buffer_free(&out);
        return;
    }
    for (size_t i = 0; template_files[i].path != NULL; i++)
        fprintf(cli->out, "%s/%s\n", folder, template_files[i].path);
    if (!cli->quiet)
        fprintf(cli->err,
                "\nNext:\n"
                "  cd %s\n"
                "  moontide test\n"
                "  moontide append events.ndjson\n"
                "  moontide run --until-idle\n"
                "  moontide read orders\n",
                folder);
}

enum status cli_new(struct cli *cli, struct diag *diag)
{
    char *folder = cli->args[0];
    size_t len = strlen(folder);
    enum status status;

    while (len > 1 && folder[len - 1] == '/')
        folder[--len] = '\0';
    if (len == 0)
        return diag_set(diag, STATUS_USAGE, "DIR must not be empty");
    status = make_folder(folder, diag);
    if (status == STATUS_OK)
        status = check_empty(folder, diag);
    if (status == STATUS_OK)
        status = write_files(folder, diag);
    if (status == STATUS_OK)
        print_result(cli, folder);
    return status;
}
