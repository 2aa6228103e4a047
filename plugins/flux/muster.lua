-- SPDX-License-Identifier: BSD-3-Clause
-- For lua.d in the rc directory of Flux's job shell, once every broker has muster's module: jobs
-- that do not say which PMI they want get muster's PMIx, beside the PMI-1 that Flux instances in
-- jobs, and older programs, start with.
if shell.options.pmi == nil then
    shell.options.pmi = "simple,muster"
end
