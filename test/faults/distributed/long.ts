/** Whether faults last as long as they may, and not as short as they can be told by. */
export const IS_LONG = Number(process.env.MAYFLY_FAULT_ROUNDS ?? 0) >= 20
