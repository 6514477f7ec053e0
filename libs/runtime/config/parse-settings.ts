import * as kind from './setting.js'

const MIB = 1024 * 1024

/** How much mail is taken on, and what reading it may cost (docs/decisions/0017-fair-parsing.md). */
export const PARSE_SETTINGS = {
  maxMessageBytes: kind.wholeNumber(
    'MAYFLY_MAX_MESSAGE_BYTES',
    { least: 1024, most: 256 * MIB },
    { default: 25 * MIB, help: 'Largest mail accepted, in bytes.' },
  ),
  maxBacklog: kind.wholeNumber(
    'MAYFLY_MAX_BACKLOG',
    { least: 1, most: 1_000_000_000 },
    { default: 100_000, help: 'Accepted mails that may wait to be parsed. With more, SMTP answers 451.' },
  ),
  parseThreads: kind.wholeNumber(
    'MAYFLY_PARSE_THREADS',
    { least: 1, most: 64 },
    { default: 2, help: 'Threads that parse mail. As many as there are cores is best.' },
  ),
  parseTimeoutMs: kind.wholeNumber(
    'MAYFLY_PARSE_TIMEOUT_MS',
    { least: 100, most: 600_000 },
    {
      default: 10_000,
      help: 'Longest time to parse one mail, in milliseconds, whatever the budgets below leave.',
    },
  ),
  parsePatienceMs: kind.wholeNumber(
    'MAYFLY_PARSE_PATIENCE_MS',
    { least: 100, most: 600_000 },
    {
      default: 500,
      help:
        'Shorter limit in milliseconds, plus 40 ms and 40 ms per MiB, for a mail that takes more than the usual CPU ' +
        'time (20 ms, and 20 ms per MiB). Beyond it only the header is parsed. It applies to mail of the last minute, ' +
        'while more than one account receives mail.',
    },
  ),
  parseInboxBudgetMs: kind.wholeNumber(
    'MAYFLY_PARSE_INBOX_BUDGET_MS',
    { least: 0, most: 60_000 },
    {
      default: 250,
      help:
        'CPU milliseconds beyond the usual that parsing the mail of one inbox may take per minute, while more than one ' +
        'account receives mail. Beyond it only headers are parsed.',
    },
  ),
  parseAccountBudgetMs: kind.wholeNumber(
    'MAYFLY_PARSE_ACCOUNT_BUDGET_MS',
    { least: 0, most: 600_000 },
    {
      default: 500,
      help: 'The same for all inboxes of an account. Beyond it only the headers of mails above 64 KiB are parsed.',
    },
  ),
  parseMemoryMib: kind.wholeNumber(
    'MAYFLY_PARSE_MEMORY_MIB',
    { least: 64, most: 16_384 },
    {
      default: 2048,
      help: 'Largest heap of one parsing thread, in MiB. Below 2048 it spends much more time in garbage collection.',
    },
  ),
} as const
