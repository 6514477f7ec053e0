/** Redis can't be used as it is: an operator's affair. The message says what to do. */
export class RedisSetupError extends Error {
  override readonly name = 'RedisSetupError'
}
