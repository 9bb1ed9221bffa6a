terraform {
  required_version = ">= 1.0"

  required_providers {
    coder = {
      source  = "coder/coder"
      version = ">= 2.13"
    }
  }
}

variable "agent_id" {
  type        = string
  description = "The ID of a Coder agent."
}

variable "task_prompt" {
  type        = string
  description = "The task, given to the agent when its session begins and never again."
  default     = ""
}

variable "directory" {
  type        = string
  description = "The directory the agent works in."
  default     = ""
}

variable "agentapi_port" {
  type        = number
  description = "The port used by AgentAPI."
  default     = 3284
}

variable "enable_state_persistence" {
  type        = bool
  description = "Keep AgentAPI's conversation across restarts. It takes AgentAPI 0.12.0 or newer."
  default     = true
}

variable "task_log_snapshot" {
  type        = bool
  description = "Hand the last ten messages to Coder when the workspace stops."
  default     = true
}

variable "state_file_path" {
  type        = string
  description = "Where AgentAPI keeps its conversation, if not in the module's directory."
  default     = ""
}

variable "pid_file_path" {
  type        = string
  description = "Where AgentAPI's process id is kept, if not in the module's directory."
  default     = ""
}

data "coder_task" "me" {}

locals {
  env = {
    REFERENCE_TASK_PROMPT    = var.task_prompt
    REFERENCE_TASK_ID        = try(data.coder_task.me.id, "")
    REFERENCE_DIRECTORY      = var.directory
    REFERENCE_AGENTAPI_PORT  = tostring(var.agentapi_port)
    REFERENCE_KEEPS_STATE    = tostring(var.enable_state_persistence)
    REFERENCE_POSTS_SNAPSHOT = tostring(var.task_log_snapshot)
    REFERENCE_STATE_FILE     = var.state_file_path
    REFERENCE_PID_FILE       = var.pid_file_path
  }
}

resource "coder_env" "reference" {
  for_each = local.env
  agent_id = var.agent_id
  name     = each.key
  value    = each.value
}

resource "coder_script" "start" {
  agent_id     = var.agent_id
  display_name = "Start the reference agent"
  script       = "${file("${path.module}/scripts/lib.sh")}\n${file("${path.module}/scripts/start.sh")}"
  run_on_start = true
}

resource "coder_script" "stop" {
  agent_id     = var.agent_id
  display_name = "Stop the reference agent"
  script       = "${file("${path.module}/scripts/lib.sh")}\n${file("${path.module}/scripts/stop.sh")}"
  run_on_stop  = true
}

resource "coder_app" "agentapi" {
  agent_id     = var.agent_id
  slug         = "reference"
  display_name = "Reference agent"
  url          = "http://localhost:${var.agentapi_port}/"
}
