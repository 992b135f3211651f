;; The five tools that every runtime brings, and what they need of the WASI: one request in, one reply out.
(module
  (import "wasi_snapshot_preview1" "fd_read" (func $fd_read (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))

  (memory (export "memory") 2)
  ;; 0: address and length of what is read or written; 8: how much it was; 256: texts; 4096: the request; 65536: the reply
  (data (i32.const 256) "\\\"value\\\":")
  (data (i32.const 512) "{\"contract_version\":\"v1\",\"status\":\"ok\",\"output\":")
  (data (i32.const 768) "{\"contract_version\":\"v1\",\"status\":\"error\",\"error\":{\"message\":\"No such thing\",\"retryable\":true,\"details\":{\"retry_after_ms\":5}}}")

  (func $read (param $at i32) (param $most i32) (result i32)
    (i32.store (i32.const 0) (local.get $at))
    (i32.store (i32.const 4) (local.get $most))
    (drop (call $fd_read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))
    (i32.load (i32.const 8)))

  (func $write (param $at i32) (param $length i32)
    (i32.store (i32.const 0) (local.get $at))
    (i32.store (i32.const 4) (local.get $length))
    (drop (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8))))

  ;; Whether the ten bytes at an address are \"value\": with its quotes escaped, as they are inside a JSON string.
  (func $is_value (param $at i32) (result i32)
    (local $i i32)
    (loop $next
      (if (i32.ne (i32.load8_u (i32.add (local.get $at) (local.get $i)))
                  (i32.load8_u (i32.add (i32.const 256) (local.get $i))))
        (then (return (i32.const 0))))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $next (i32.lt_u (local.get $i) (i32.const 10))))
    (i32.const 1))

  ;; Copies the value out of the input, one level of escapes taken off, until the string around it ends.
  (func (export "echo")
    (local $from i32) (local $to i32) (local $byte i32) (local $length i32)
    (local.set $from (i32.const 4096))
    (loop $more
      (local.set $length (call $read (local.get $from) (i32.const 32768)))
      (local.set $from (i32.add (local.get $from) (local.get $length)))
      (br_if $more (local.get $length)))
    (local.set $from (i32.const 4095))
    (loop $search
      (local.set $from (i32.add (local.get $from) (i32.const 1)))
      (br_if $search (i32.eqz (call $is_value (local.get $from)))))
    (local.set $from (i32.add (local.get $from) (i32.const 10)))
    (local.set $to (i32.const 65536))
    (block $done
      (loop $copy
        (local.set $byte (i32.load8_u (local.get $from)))
        (br_if $done (i32.eq (local.get $byte) (i32.const 34)))
        (if (i32.eq (local.get $byte) (i32.const 92))
          (then
            (local.set $from (i32.add (local.get $from) (i32.const 1)))
            (local.set $byte (i32.load8_u (local.get $from)))))
        (i32.store8 (local.get $to) (local.get $byte))
        (local.set $from (i32.add (local.get $from) (i32.const 1)))
        (local.set $to (i32.add (local.get $to) (i32.const 1)))
        (br $copy)))
    ;; What was copied ends with the brace of the arguments, which is also the one the reply needs.
    (call $write (i32.const 512) (i32.const 48))
    (call $write (i32.const 65536) (i32.sub (local.get $to) (i32.const 65536))))

  (func (export "fail") (call $write (i32.const 768) (i32.const 126)))

  (func (export "hang") (loop $forever (br $forever)))

  (func (export "die") unreachable)

  (func (export "flood")
    (local $i i32)
    (loop $again
      (call $write (i32.const 4096) (i32.const 10000))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $again (i32.lt_u (local.get $i) (i32.const 10))))))
