import { readHtml } from './visible-text.js'

const cases: { send: string; expect: string }[] = [
  { send: '<p>One</p><p>Two<br>Three</p>', expect: 'One\nTwo\nThree' },
  { send: '<b>49</b><i>32</i><span>01</span>', expect: '493201' },
  { send: ' a \n b&nbsp;&nbsp;c &amp; d ', expect: 'a b c & d' },
  {
    send: '<head><title>T</title><style>p{}</style></head><body>B<script>s</script><!-- c --></body>',
    expect: 'B',
  },
  { send: '<table><tr><td>1</td><td>2</td></tr><tr><td>3</td></tr></table>', expect: '1 2\n3' },
  { send: '<pre>a\nb</pre>c', expect: 'a\nb\nc' },
  {
    send: '<div style="color:red; display: none"><p>hidden</p></div><p hidden>too</p>shown',
    expect: 'shown',
  },
  { send: '12&#8203;34&shy;56', expect: '123456' },
  { send: 'a<', expect: 'a<' },
  // Text without size, or with the color of its background.
  {
    send: '<p style="visibility: hidden">a</p><p style="opacity:0">b</p><p style="OPACITY:0.5">c</p>',
    expect: 'c',
  },
  { send: '<p style="max-height:0;overflow:hidden">a</p><p style="max-height:0">b</p>', expect: 'b' },
  { send: '<td style="font-size:0px"><i>a</i><div style="font-size:13px">b</div></td>', expect: 'b' },
  {
    send: '<p style="font:0/0 a">a</p><p style="font:12px/1 a">b</p><p style="font-size:1px">c</p>',
    expect: 'b',
  },
  {
    send: '<td bgcolor=white><p style="color:#FFF">a</p><p style="color:#fffffe">b</p>c</td>',
    expect: 'b\nc',
  },
  {
    send: '<div style="background:rgb(255, 255, 255)"><font color="#ffffff">a<b style="color:#000">b</b></font>c</div>',
    expect: 'bc',
  },
  { send: '<p style="color:transparent">a</p><p style="color:rgba(0,0,0,0)">b</p>c', expect: 'c' },
  // A style sheet or an image may set any other background.
  { send: '<td bgcolor="#fff"><p class=x style="color:#fff">a</p></td>', expect: 'a' },
  { send: '<td style="background:#fff url(a)"><p style="color:#fff">a</p></td>', expect: 'a' },
  { send: '<p style="color:#fff">a</p>', expect: 'a' },
  { send: '<td bgcolor="#fff" style="color:#fff"><a href=x>a</a></td>', expect: 'a' },
  { send: '<p style="mso-hide:all">a</p>', expect: 'a' },
  { send: 'a<span style="display:none">b<p>c</p></span>d', expect: 'ad' },
  { send: '\u202aa\u202c \u200eb\u200c c\u2060', expect: 'a b c' },
  { send: 'می\u200cخواهم', expect: 'می\u200cخواهم' },
  { send: '', expect: '' },
]

test.each(cases)('$send', ({ send, expect: expected }) => expect(readHtml(send).text).toBe(expected))
