import { MAX_NOTE_BYTES, type GroupPlace } from './event-log.js'

/** Throws RangeError if a place's note is longer than every log takes. */
export function refuseLongNotes(places: readonly GroupPlace[]): void {
  for (const { topic, partition, note } of places) {
    const bytes = Buffer.byteLength(note)
    if (bytes <= MAX_NOTE_BYTES) continue
    throw new RangeError(
      `the note on ${topic}/${partition} has ${bytes} bytes, ${MAX_NOTE_BYTES} at most are kept`,
    )
  }
}
