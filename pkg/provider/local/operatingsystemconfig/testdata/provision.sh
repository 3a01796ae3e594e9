#!/bin/bash
set -e

if [ -e /var/lib/osc/provision-osc-applied ]; then
  exit 0
fi

mkdir -p '/etc'
base64 -d > '/etc/text' << 'END_OF_FILE_CONTENT'
dGV4dAo=
END_OF_FILE_CONTENT
chmod 0644 '/etc/text'

mkdir -p '/etc'
cat > '/etc/machine-name' << 'END_OF_FILE_CONTENT'
<<MACHINE_NAME>>
END_OF_FILE_CONTENT
chmod 0644 '/etc/machine-name'

mkdir -p '/opt/bin'
base64 -d > '/opt/bin/it'\''s' << 'END_OF_FILE_CONTENT'
IyEvYmluL3NoCg==
END_OF_FILE_CONTENT
chmod 0755 '/opt/bin/it'\''s'

if [ "$(hostname)" = 'another-host' ]; then
  mkdir -p '/etc'
  base64 -d > '/etc/elsewhere' << 'END_OF_FILE_CONTENT'
YQ==
END_OF_FILE_CONTENT
  chmod 0644 '/etc/elsewhere'
fi

mkdir -p '/etc'
base64 -d > '/etc/token' << 'END_OF_FILE_CONTENT'
c2VjcmV0
END_OF_FILE_CONTENT
chmod 0644 '/etc/token'

mkdir -p '/etc/systemd/system'
base64 -d > '/etc/systemd/system/a.service' << 'END_OF_FILE_CONTENT'
W1NlcnZpY2VdCkV4ZWNTdGFydD0vYmluL3RydWUK
END_OF_FILE_CONTENT
chmod 0644 '/etc/systemd/system/a.service'

mkdir -p '/etc/systemd/system/a.service.d'
base64 -d > '/etc/systemd/system/a.service.d/b.conf' << 'END_OF_FILE_CONTENT'
W1VuaXRdCg==
END_OF_FILE_CONTENT
chmod 0644 '/etc/systemd/system/a.service.d/b.conf'

systemctl daemon-reload
systemctl enable 'a.service'
systemctl --no-block restart 'a.service'
systemctl disable 'c.service'
systemctl --no-block stop 'c.service'

mkdir -p /var/lib/osc
touch /var/lib/osc/provision-osc-applied
