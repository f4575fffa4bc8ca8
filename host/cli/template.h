/*
 * Template -- the files of the small application that `moontide new` writes.
 */
#ifndef HOST_CLI_TEMPLATE_H
#define HOST_CLI_TEMPLATE_H

/** Stands where the folder of annotations for editors goes, as a JSON string
 * and a comma; for nothing when it is not known. */
#define TEMPLATE_ANNOTATIONS "@ANNOTATIONS@"

struct template_file {
    const char *path; /* relative, folders separated by / */
    const char *text;
};

/** Ends with a NULL path. */
extern const struct template_file template_files[];

#endif
