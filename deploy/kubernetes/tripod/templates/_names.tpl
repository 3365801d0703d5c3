{{/* Labels by which pods of one release are found. */}}
{{- define "tripod.selector" -}}
app.kubernetes.io/name: tripod
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{/* Labels of everything. */}}
{{- define "tripod.labels" -}}
{{ include "tripod.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{/* The part of the names of pods behind their own: that of the Service between nodes. */}}
{{- define "tripod.domain" -}}
{{ .Release.Name }}-peers.{{ .Release.Namespace }}.svc.{{ .Values.clusterDomain }}
{{- end }}

{{/* The voters of the first start. */}}
{{- define "tripod.initial" -}}
{{- range $index := until (int .Values.replicas) }}
{{- if $index }},{{ end }}{{ add1 $index }}={{ $.Release.Name }}-{{ add1 $index }}.{{ include "tripod.domain" $ }}:{{ int $.Values.ports.peer }}
{{- end }}
{{- end }}

{{/* Where a node's certificate is. */}}
{{- define "tripod.tls" -}}
/etc/tripod/tls{{ with .Values.tls.directory }}/{{ . }}{{ end }}
{{- end }}
