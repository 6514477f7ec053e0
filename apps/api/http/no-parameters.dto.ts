/** The query, or the body, of a request that takes none: whatever is in it is a fault. */
// eslint-disable-next-line @typescript-eslint/no-extraneous-class -- Nest takes it as the type to check against.
export class NoParameters {}
