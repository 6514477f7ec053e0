/** What keeps an engine from being opened, and what to do: the process ends with that one line. */
export class StartError extends Error {
  override readonly name: string = 'StartError'
}
