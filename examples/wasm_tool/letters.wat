;; Letters.Rot13: one JSON request on standard input, one JSON reply on standard output, and nothing else in between.
;;
;; The request holds the arguments as a text, "input":"{\"text\":\"Hello\"}", so their quotes are escaped once. The tool
;; looks for \"text\": and copies what follows, one level of escapes taken off and each letter moved by thirteen places.
(module
  (import "wasi_snapshot_preview1" "fd_read" (func $fd_read (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))

  ;; 0: address and length for the WASI; 8: how much it read or wrote; 256, 512: texts; 4096: the request; 65536: the reply
  (memory (export "memory") 2)
  (data (i32.const 256) "\\\"text\\\":")
  (data (i32.const 512) "{\"contract_version\":\"v1\",\"status\":\"ok\",\"output\":")

  (func $read (param $at i32) (param $most i32) (result i32)
    (i32.store (i32.const 0) (local.get $at))
    (i32.store (i32.const 4) (local.get $most))
    (drop (call $fd_read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))
    (i32.load (i32.const 8)))

  (func $write (param $at i32) (param $length i32)
    (i32.store (i32.const 0) (local.get $at))
    (i32.store (i32.const 4) (local.get $length))
    (drop (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8))))

  ;; Whether the name of the argument stands at this address.
  (func $is_name (param $at i32) (result i32)
    (i32.and
      (i64.eq (i64.load (local.get $at)) (i64.load (i32.const 256)))
      (i32.eq (i32.load8_u offset=8 (local.get $at)) (i32.const 58))))

  (func $moved (param $byte i32) (result i32)
    (local $first i32)
    (local.set $first (i32.and (local.get $byte) (i32.const 32)))  ;; small letters are 32 above large ones
    (local.set $first (i32.add (local.get $first) (i32.const 65)))
    (if (result i32) (i32.lt_u (i32.sub (local.get $byte) (local.get $first)) (i32.const 26))
      (then (i32.add (local.get $first) (i32.rem_u
        (i32.add (i32.sub (local.get $byte) (local.get $first)) (i32.const 13)) (i32.const 26))))
      (else (local.get $byte))))

  (func (export "rot13")
    (local $from i32) (local $to i32) (local $byte i32) (local $length i32)
    (local.set $from (i32.const 4096))
    (loop $more
      (local.set $length (call $read (local.get $from) (i32.sub (i32.const 65536) (local.get $from))))
      (local.set $from (i32.add (local.get $from) (local.get $length)))
      (br_if $more (local.get $length)))
    (local.set $from (i32.const 4095))
    (loop $search
      (local.set $from (i32.add (local.get $from) (i32.const 1)))
      (br_if $search (i32.eqz (call $is_name (local.get $from)))))
    (local.set $from (i32.add (local.get $from) (i32.const 9)))
    (local.set $to (i32.const 65536))
    (block $done
      (loop $copy
        (local.set $byte (i32.load8_u (local.get $from)))
        (br_if $done (i32.eq (local.get $byte) (i32.const 34)))  ;; a quote that is not escaped ends the input
        (if (i32.eq (local.get $byte) (i32.const 92))
          (then
            (local.set $from (i32.add (local.get $from) (i32.const 1)))
            (local.set $byte (i32.load8_u (local.get $from)))))
        (i32.store8 (local.get $to) (call $moved (local.get $byte)))
        (local.set $from (i32.add (local.get $from) (i32.const 1)))
        (local.set $to (i32.add (local.get $to) (i32.const 1)))
        (br $copy)))
    ;; The last byte copied is the brace that ended the arguments; it ends the reply too.
    (call $write (i32.const 512) (i32.const 48))
    (call $write (i32.const 65536) (i32.sub (local.get $to) (i32.const 65536)))))
