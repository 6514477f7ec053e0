import type { Static } from 'typebox'
import type { UsageFigures, UsageReport } from '#libs/ports/usage/usage-store.js'
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

export function reportJson(report: UsageReport, countedUpTo: Date | null): Static<typeof UsageReportSchema> {
  const {
    visibleMs,
    firstReadMs,
    acceptMs,
    inboxesWithoutMail,
    firstMailAt,
    lastMailAt,
    timeline,
    ...counts
  } = report
  return {
    counted_up_to: countedUpTo?.toISOString() ?? null,
    ...counts,
    inboxes_without_mail: inboxesWithoutMail,
    accept_ms: acceptMs,
    visible_ms: visibleMs,
    first_read_ms: firstReadMs,
    first_mail_at: firstMailAt?.toISOString() ?? null,
    last_mail_at: lastMailAt?.toISOString() ?? null,
    mails_per_second: mailsPerSecond(report),
    timeline: timeline.map(({ from, to, ...bucket }) => ({
      from: from.toISOString(),
      to: to.toISOString(),
      ...bucket,
    })),
  }
}

/** The intervals between mails, not the mails, divide the time from the first to the last. */
function mailsPerSecond({ mails, firstMailAt, lastMailAt }: UsageReport): number | null {
  const seconds = ((lastMailAt?.getTime() ?? 0) - (firstMailAt?.getTime() ?? 0)) / 1_000
  return seconds > 0 ? Math.round(((mails - 1) / seconds) * 1_000) / 1_000 : null
}
