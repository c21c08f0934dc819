# SPDX-License-Identifier: Apache-2.0
# Pages of section 3 come from the public headers; make html renders all pages with an index.

PUBLIC_HEADERS := $(sort $(wildcard include/nri-rp/*.h))
LIB_HEADERS := $(sort $(wildcard include/nri-rp/lib/*.h))
LIB_MAN3 := $(patsubst %,$(O)/man/nri-rp-lib-%.3,$(subst _,-,$(notdir $(basename $(LIB_HEADERS)))))
MAN3 := $(patsubst include/nri-rp/%.h,$(O)/man/nri-rp-%.3,$(PUBLIC_HEADERS)) $(LIB_MAN3)
ALL_MANS := $(sort $(wildcard man/*.[1-8]))
HTML := $(patsubst man/%,$(O)/html/%.html,$(ALL_MANS)) $(patsubst $(O)/man/%,$(O)/html/%.html,$(MAN3))

$(filter-out $(LIB_MAN3),$(MAN3)): $(O)/man/nri-rp-%.3: include/nri-rp/%.h man/section3
	$(Q)man/section3 $(@D) $<
$(LIB_MAN3): $(O)/man/.lib.made ;
$(O)/man/.lib.made: $(LIB_HEADERS) man/section3
	$(Q)man/section3 $(@D) $(LIB_HEADERS) && touch $@

$(O)/html/%.html: man/% | $(O)/html/.made
	$(Q)mandoc -Thtml -Oman=%N.%S.html,toc $< >$@
$(O)/html/%.html: $(O)/man/% | $(O)/html/.made
	$(Q)mandoc -Thtml -Oman=%N.%S.html,toc $< >$@
$(O)/html/.made:
	@mkdir -p $(@D) && touch $@

$(O)/html/index.html: $(HTML)
	$(Q)( echo '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>nri-rp</title></head><body><h1>nri-rp</h1><dl>'; \
	for page in $(ALL_MANS) $(MAN3); do name=$${page##*/}; \
		printf '<dt><a href="%s.html">%s(%s)</a></dt><dd>%s</dd>\n' $$name $${name%.*} $${name##*.} "$$(sed -n 's/^\.Nd //p' $$page)"; \
	done; echo '</dl></body></html>' ) >$@

.PHONY: html man3
man3: $(MAN3) ## the manual pages of the public headers and of the library for modules (section 3)
html: $(O)/html/index.html ## all manual pages as HTML, with an index: build/html/index.html
