export function loadHttpCommand(..._: unknown[]): void {}
