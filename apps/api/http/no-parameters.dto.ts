/** The query of a path that takes none: whatever is in it is a fault. */
export class NoParameters {}
