# SPDX-License-Identifier: BSD-3-Clause
# Loads muster's module into every broker, as modprobe.d/muster.toml describes it.


def setup(context):
    context.load_modules(["muster"])
