import * as kind from './setting.js'

const MIB = 1024 * 1024

/** What clients that read mail may hold of the API. */
export const READER_SETTINGS = {
  maxStreams: kind.wholeNumber(
    'MAYFLY_MAX_STREAMS',
    { least: 0, most: 1_000_000 },
    {
      default: 10_000,
      help: 'Event streams open at once, shared fairly if that is not enough. More are answered 503.',
    },
  ),
  streamStallMs: kind.wholeNumber(
    'MAYFLY_STREAM_STALL_MS',
    { least: 1_000, most: 3_600_000 },
    {
      default: 30_000,
      help: 'Time in milliseconds in which a client must read something of its stream, and 1 MiB of a large answer, or is disconnected.',
    },
  ),
  maxWaits: kind.wholeNumber(
    'MAYFLY_MAX_WAITS',
    { least: 1, most: 1_000_000 },
    {
      default: 10_000,
      help: 'Requests that may wait for a message at once, shared fairly if that is not enough. More are answered 503.',
    },
  ),
  openedMailBytes: kind.wholeNumber(
    'MAYFLY_OPENED_MAIL_BYTES',
    { least: 0, most: 64 * 1024 * MIB },
    {
      default: 64 * MIB,
      help: 'Memory in which the API caches mail that was read in the last minute, in bytes; 0 for no cache.',
    },
  ),
} as const
