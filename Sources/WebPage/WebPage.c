#include "WebPage.h"

#pragma clang diagnostic ignored "-Wc23-extensions"

static const unsigned char actions_js[] = {
#embed "Page/actions.js"
};
static const unsigned char activity_js[] = {
#embed "Page/activity.js"
};
static const unsigned char api_js[] = {
#embed "Page/api.js"
};
static const unsigned char app_js[] = {
#embed "Page/app.js"
};
static const unsigned char dom_js[] = {
#embed "Page/dom.js"
};
static const unsigned char file_js[] = {
#embed "Page/file.js"
};
static const unsigned char files_js[] = {
#embed "Page/files.js"
};
static const unsigned char index_html[] = {
#embed "Page/index.html"
};
static const unsigned char layers_js[] = {
#embed "Page/layers.js"
};
static const unsigned char lines_js[] = {
#embed "Page/lines.js"
};
static const unsigned char preview_js[] = {
#embed "Page/preview.js"
};
static const unsigned char profiles_js[] = {
#embed "Page/profiles.js"
};
static const unsigned char reorder_js[] = {
#embed "Page/reorder.js"
};
static const unsigned char stack_js[] = {
#embed "Page/stack.js"
};
static const unsigned char strings_js[] = {
#embed "Page/strings.js"
};
static const unsigned char style_css[] = {
#embed "Page/Style/style.css"
};
static const unsigned char tree_js[] = {
#embed "Page/tree.js"
};
static const unsigned char views_css[] = {
#embed "Page/Style/views.css"
};
static const unsigned char virtual_js[] = {
#embed "Page/virtual.js"
};

#define HTML "text/html; charset=utf-8"
#define SCRIPT "text/javascript; charset=utf-8"
#define STYLE "text/css; charset=utf-8"

static const struct bundlefs_page_file files[] = {
    {"actions.js", SCRIPT, actions_js, sizeof actions_js},
    {"activity.js", SCRIPT, activity_js, sizeof activity_js},
    {"api.js", SCRIPT, api_js, sizeof api_js},
    {"app.js", SCRIPT, app_js, sizeof app_js},
    {"dom.js", SCRIPT, dom_js, sizeof dom_js},
    {"file.js", SCRIPT, file_js, sizeof file_js},
    {"files.js", SCRIPT, files_js, sizeof files_js},
    {"index.html", HTML, index_html, sizeof index_html},
    {"layers.js", SCRIPT, layers_js, sizeof layers_js},
    {"lines.js", SCRIPT, lines_js, sizeof lines_js},
    {"preview.js", SCRIPT, preview_js, sizeof preview_js},
    {"profiles.js", SCRIPT, profiles_js, sizeof profiles_js},
    {"reorder.js", SCRIPT, reorder_js, sizeof reorder_js},
    {"stack.js", SCRIPT, stack_js, sizeof stack_js},
    {"strings.js", SCRIPT, strings_js, sizeof strings_js},
    {"style.css", STYLE, style_css, sizeof style_css},
    {"tree.js", SCRIPT, tree_js, sizeof tree_js},
    {"views.css", STYLE, views_css, sizeof views_css},
    {"virtual.js", SCRIPT, virtual_js, sizeof virtual_js},
};

const struct bundlefs_page_file *bundlefs_page_file(size_t index) {
  return index < sizeof files / sizeof files[0] ? &files[index] : NULL;
}
