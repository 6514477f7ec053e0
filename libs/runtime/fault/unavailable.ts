/**
 * Something that the process depends on is out of reach or too busy: the same call may succeed later. Every port has an error
 * of this kind, so that callers who wait or try again need not know them one by one.
 */
export abstract class UnavailableError extends Error {}
