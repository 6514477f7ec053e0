import { tagOf } from './mailbox.js'

describe('the tag of a mailbox', () => {
  test.each([
    { mailbox: 'user+Sign-Up@example.com', tag: 'Sign-Up' },
    { mailbox: 'user+one+two@example.com', tag: 'one+two' },
    { mailbox: 'user+@example.com', tag: '' },
    { mailbox: 'user@example.com', tag: null },
    { mailbox: '+user@example.com', tag: null },
    { mailbox: 'user@a+b.example', tag: null },
    { mailbox: 'a+b', tag: null },
    { mailbox: '', tag: null },
  ])('of $mailbox is $tag', ({ mailbox, tag }) => {
    expect(tagOf(mailbox)).toBe(tag)
  })
})
