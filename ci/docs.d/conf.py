# SPDX-License-Identifier: BSD-3-Clause
"""Settings of Sphinx for the site of the documents; ci/docs runs it on what ci/docs.d/pages has made."""
project = "muster"
author = "muster developers"
extensions = ["myst_parser"]
root_doc = "index"
html_theme = "furo"
html_title = "muster"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
highlight_language = "none"      # a block without a language is a terminal, or a picture
myst_heading_anchors = 6         # with the names that GitHub gives them
