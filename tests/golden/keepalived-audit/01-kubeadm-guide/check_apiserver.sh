#!/bin/sh
APISERVER_VIP=192.0.2.10
failed() {
    echo "$*" >&2
    exit 1
}
curl -sk --max-time 2 https://localhost:6443/ -o /dev/null || failed "not answered here"
if ip addr | grep -q ${APISERVER_VIP}; then
    curl -sk --max-time 2 https://${APISERVER_VIP}:6443/ -o /dev/null || failed "not answered at the VIP"
fi
