terraform {
  required_version = ">= 1.0"

  required_providers {
    coder = {
      source  = "coder/coder"
      version = ">= 2.12"
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

variable "agentapi_port" {
  type        = number
  description = "The port used by AgentAPI."
  default     = 3284
}

resource "coder_env" "task_prompt" {
  agent_id = var.agent_id
  name     = "REFERENCE_TASK_PROMPT"
  value    = var.task_prompt
}

resource "coder_env" "agentapi_port" {
  agent_id = var.agent_id
  name     = "REFERENCE_AGENTAPI_PORT"
  value    = tostring(var.agentapi_port)
}

resource "coder_script" "start" {
  agent_id     = var.agent_id
  display_name = "Start the reference agent"
  script       = file("${path.module}/scripts/start.sh")
  run_on_start = true
}

resource "coder_script" "stop" {
  agent_id     = var.agent_id
  display_name = "Stop the reference agent"
  script       = file("${path.module}/scripts/stop.sh")
  run_on_stop  = true
}

resource "coder_app" "agentapi" {
  agent_id     = var.agent_id
  slug         = "reference"
  display_name = "Reference agent"
  url          = "http://localhost:${var.agentapi_port}/"
}
