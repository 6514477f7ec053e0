import type { Static } from 'typebox'
import type { UsageFigures, UsageReport } from '#libs/usage/usage-store.js'
import type { UsageReportSchema, UsageRow } from './usage-schemas.js'

export function usageRowJson(
  { at: _at, group, requestMs, visibleMs, ...totals }: UsageFigures,
  { from, to }: { from: Date; to: Date },
): Static<typeof UsageRow> {
  return {
    from: from.toISOString(),
    to: to.toISOString(),
    group,
    ...totals,
    request_ms: requestMs,
    visible_ms: visibleMs,
  }
}

export function reportJson({
  visibleMs,
  firstReadMs,
  firstMailAt,
  lastMailAt,
  ...counts
}: UsageReport): Static<typeof UsageReportSchema> {
  return {
    ...counts,
    visible_ms: visibleMs,
    first_read_ms: firstReadMs,
    first_mail_at: firstMailAt?.toISOString() ?? null,
    last_mail_at: lastMailAt?.toISOString() ?? null,
  }
}
